"""Keywords of the question do not count: they tell no answers apart."""

from __future__ import annotations

import pytest

from robustrag_integrations import CallableModel, KeywordAggregation
from robustrag_integrations.text.languages import asks_for_something_else

REPLIES = ["Karl Gross won the Harbour Cup.", "The Harbour Cup went to Karl Gross.", "Karl Gross", "It was Karl Gross."]


def _defense(**settings: object) -> KeywordAggregation:
    def model(prompt: str) -> str:
        return next((reply for i, reply in enumerate(REPLIES) if f"passage {i}." in prompt), "final")

    return KeywordAggregation(CallableModel(model), **settings)  # type: ignore[arg-type]


PASSAGES = [f"passage {i}." for i in range(len(REPLIES))]


def test_keywords_of_the_question_are_not_counted() -> None:
    answer = _defense(alpha=0.5).answer("Who won the Harbour Cup?", PASSAGES)
    assert answer.evidence["retained"] == ["gross", "karl", "karl gross"]
    assert not {"harbour", "cup", "harbour cup"} & answer.evidence["counts"].keys()


def test_a_response_of_nothing_but_the_question_keeps_its_words() -> None:
    answer = _defense(extractor=lambda text: {"who"}).answer("Who?", PASSAGES)
    assert answer.evidence["retained"] == ["who"]


def test_an_extractor_that_cannot_read_the_question_still_reads_the_responses() -> None:
    def extract(text: str) -> set[str]:
        if "?" in text:
            raise ValueError("odd")
        return {"karl"}

    assert _defense(extractor=extract).answer("Who?", PASSAGES).evidence["retained"] == ["karl"]


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("Who won?", True),
        ("Is it effective?", False),
        ("Which is larger, Rome or Oslo?", False),
        ("Wann wurde es gebaut?", True),
        ("造纸厂在哪里？", True),
        ("是苹果还是梨？", False),
        ("옹기는 어디에서 만듭니까?", True),
        ("Кто победил?", True),
        ("¿Cuál es mayor, Roma u Oslo?", False),
        ("O que destruiu a ponte?", True),
        ("Quem escreveu o hino?", True),
        ("q", False),
    ],
)
def test_which_questions_ask_for_something_else(question: str, expected: bool) -> None:
    assert asks_for_something_else(question) is expected
