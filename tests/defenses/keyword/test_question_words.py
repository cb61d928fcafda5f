"""Keywords of the question do not count: they tell no answers apart."""

from __future__ import annotations

from robustrag_integrations import CallableModel, KeywordAggregation

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
