"""Three hundred questions, 64 at a time, through both integrations: nothing is lost, and every answer is its own."""

from __future__ import annotations

import pytest

from benchmarks.load import DOCUMENTS, STYLES, measure
from tests.helpers.leaks import nothing_left

QUESTIONS = 75  # in each of the four styles


@pytest.mark.parametrize("style", STYLES)
def test_every_question_gets_its_own_answer_under_load(style: str) -> None:
    pytest.importorskip("langchain_openai" if style.startswith("langchain") else "llama_index.llms.openai_like")
    measure(style, 2, 2, 0.0)  # what is loaded once stays
    with nothing_left():
        load = measure(style, QUESTIONS, 64, 0.02)
    assert load.failed == {}
    assert load.wrong == []
    assert load.answered == len(load.times) == QUESTIONS
    assert len(load.server_times) == QUESTIONS * (DOCUMENTS + 1)
    assert load.figures()["lost"] == 0
