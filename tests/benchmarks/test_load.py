"""Hundreds of questions, 64 at a time, through the core and both integrations: none is lost, each answer is its own."""

from __future__ import annotations

import pytest

from benchmarks.load import measure, measure_processes
from benchmarks.load_askers import STYLES, Asker, question
from benchmarks.load_serve import measure_serving
from benchmarks.load_tails import measure_tail
from robustrag_integrations.errors import ModelError
from tests.helpers.leaks import nothing_left

QUESTIONS, DOCUMENTS = 75, 3  # in each style
_NEEDS = {
    "core": "openai",
    "httpx": "httpx",
    "httpx-stack": "openai",
    "aiohttp": "aiohttp",
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


def test_a_question_that_is_lost_says_why() -> None:
    def ask(number: int) -> str:
        if number:
            raise ModelError("the server hung up")
        return question(number, DOCUMENTS)[2]

    async def nothing() -> None:
        return None

    asker = Asker(ask, _never, lambda: None, nothing)
    found = measure("core threads", 4, 2, 0.0, DOCUMENTS, asker_of=lambda *_: asker).figures()
    assert (found["lost"], found["why"]) == (3, {"ModelError: the server hung up": 3})


async def _never(number: int) -> str:
    raise NotImplementedError(number)


def test_processes_share_the_questions_out_and_lose_none() -> None:
    pytest.importorskip("openai")
    found = measure_processes("core async", 12, 4, 0.0, DOCUMENTS, 2)
    assert (found["questions"], found["lost"], found["another question's answer"]) == (12, 0, 0)


def test_what_deciding_early_leaves_unanswered_is_hung_up_on() -> None:
    pytest.importorskip("openai")
    waited, early = (measure_tail(case, 10, 2, 6, 0.03, 0.0, 0.3) for case in ("consensus, all", "consensus, at once"))
    for found in (waited, early):
        assert found["lost"] == found["another question's answer"] == 0
        assert found["model calls per answer"] == 6
    assert waited["of them hung up on"] == 0 < early["of them hung up on"]


def test_every_question_to_the_endpoint_gets_its_own_answer_from_two_processes() -> None:
    for library in ("aiohttp", "fastapi", "openai"):
        pytest.importorskip(library)
    found = measure_serving(2, 12, 4, DOCUMENTS, 0.0)
    assert (found["workers"], found["questions"], found["lost"], found["another question's answer"]) == (2, 12, 0, 0)
