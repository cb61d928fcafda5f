"""Hundreds of questions, 64 at a time, through the core and both integrations: none is lost, each answer is its own."""

from __future__ import annotations

import pytest

from benchmarks.load import measure
from benchmarks.load_askers import STYLES
from tests.helpers.leaks import nothing_left

QUESTIONS, DOCUMENTS = 75, 3  # in each style
_NEEDS = {
    "core": "httpx",
    "httpx": "httpx",
    "langchain": "langchain_openai",
    "llamaindex": "llama_index.llms.openai_like",
}


@pytest.mark.parametrize("style", STYLES)
def test_every_question_gets_its_own_answer_under_load(style: str) -> None:
    pytest.importorskip(_NEEDS[style.partition(" ")[0]])
    measure(style, 2, 2, 0.0, DOCUMENTS)  # what is loaded once stays
    with nothing_left():
        load = measure(style, QUESTIONS, 64, 0.02, DOCUMENTS)
    assert load.failed == {}
    assert load.wrong == []
    assert load.errors == []
    assert load.answered == len(load.times) == QUESTIONS
    assert len(load.server_times) == QUESTIONS * (DOCUMENTS + 1)
    assert load.figures()["lost"] == 0
