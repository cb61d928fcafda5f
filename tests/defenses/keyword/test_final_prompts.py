"""What is asked last: the user's own prompt, the agreed keywords, and which model."""

from __future__ import annotations

import pytest

from robustrag_integrations import CallableModel, KeywordAggregation
from robustrag_integrations.text.prompts import PromptSet, PromptTemplate, agreed_prompt, prompts_for
from tests.helpers.scripted import split

MINE = PromptTemplate("Antworte knapp. ", "Texte: {context} {{json}}\nFrage: {query}\nAntwort:", ("context", "query"))
PROMPTS = PromptSet(isolated=MINE, no_retrieval=PromptTemplate("", "{query}", ("query",)))


def test_an_isolated_prompt_of_ones_own_is_asked_at_the_end_too() -> None:
    asked: list[str] = []

    def model(prompt: str) -> str:
        asked.append(prompt)
        return "Paris {x}"

    KeywordAggregation(CallableModel(model), prompts=PROMPTS, extractor=split).answer("Wo?", ["a", "b", "c"])
    assert asked[-1] == (
        "Antworte knapp. Texte: Several sources were asked. "
        "These are the keywords on which their answers agree.\nKeywords: Paris, {x} {json}\n"
        "Frage: Wo?\nAntwort:"
    )


def test_a_prompt_without_passages_or_with_more_than_a_question_is_refused() -> None:
    with pytest.raises(ValueError, match=r"no \{context\}"):
        agreed_prompt(PROMPTS.no_retrieval, "short_answer")
    with pytest.raises(ValueError, match="no final prompt"):
        agreed_prompt(MINE, "multiple_choice")
    with pytest.raises(ValueError, match="choices"):
        KeywordAggregation(CallableModel(str), prompts=prompts_for("multiple_choice"))


def test_a_certificate_asks_the_final_model_for_responses() -> None:
    reader = CallableModel(lambda prompt: "Paris", name="small")
    writer = CallableModel(lambda prompt: "It is Paris." if "Paris" in prompt else "no", name="large")
    defense = KeywordAggregation(reader, final_model=writer, extractor=split, alpha=0.5, beta=5)
    found = defense.certify("Wo?", ["a", "b", "c", "d"], "Paris", corruption_size=1)
    assert found.tau == 1
    assert "It is Paris." in {r.text for r in found.responses}
    assert defense.model.description == "small, final answer by large"
