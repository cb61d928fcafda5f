"""Majority voting, with options of the chain or of the call."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.prompts import ChatPromptTemplate

from langchain_robustrag import create_robust_documents_chain
from tests.langchain.fakes import QUESTION, Reader, planted, truthful

CHOICES = ["London", "Paris", "Rome"]


def given(**more: Any) -> dict[str, Any]:
    return {"input": QUESTION, "context": [*truthful(), planted()], **more}


def test_options_of_the_chain() -> None:
    chain = create_robust_documents_chain(Reader(), aggregation="voting", choices=CHOICES, return_robustness=True)
    result = chain.invoke(given())
    assert result["answer"] == "Paris"
    assert (result["robustness"].choice, result["robustness"].radius) == (1, 1)


def test_options_of_the_call_come_first_and_the_prompt_may_show_them() -> None:
    reader = Reader()
    prompt = ChatPromptTemplate.from_template("{context}\n{input}\n{choices}")
    chain = create_robust_documents_chain(reader, prompt, aggregation="voting", choices=CHOICES)
    assert chain.invoke(given(choices=["Paris", "Oslo"])) == "Paris"
    shown = reader.prompts[0].splitlines()[-3:]
    assert (sorted(shown[:2]), shown[2]) == (["- Oslo", "- Paris"], "- No information found")
    lettered = create_robust_documents_chain(
        reader := Reader(), prompt, aggregation="voting", choices=CHOICES, options="letters"
    )
    lettered.invoke(given())
    assert reader.prompts[0].endswith("A. London\nB. Paris\nC. Rome\nD. No information found")


def test_a_vote_without_options_is_refused() -> None:
    chain = create_robust_documents_chain(Reader(), aggregation="voting")
    with pytest.raises(ValueError, match="choices="):
        chain.invoke(given())
    with pytest.raises(ValueError, match="2 to 26"):
        create_robust_documents_chain(Reader(), aggregation="voting", choices=["one"])


def test_the_winner_is_streamed() -> None:
    chain = create_robust_documents_chain(Reader(), aggregation="voting", choices=CHOICES)
    assert list(chain.stream(given())) == ["Paris"]
