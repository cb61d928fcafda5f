"""Which part of the input is the question."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.prompts import ChatPromptTemplate

from langchain_robustrag import create_robust_documents_chain
from langchain_robustrag.questions import find_question
from tests.langchain.fakes import Reader, truthful

MANY = ChatPromptTemplate.from_template("{context} {topic} {style}")
TALK = [HumanMessage("first"), AIMessage("reply"), HumanMessage([{"type": "text", "text": "last"}])]


@pytest.mark.parametrize(
    ("inputs", "expected"),
    [
        ({"input": "a", "question": "b"}, "a"),
        ({"question": "b", "query": "c"}, "b"),
        ({"query": "c"}, "c"),
        ({"messages": TALK}, "last"),
        ({"input": TALK}, "last"),
        ({"input": HumanMessage("one")}, "one"),
        ({"input": {"not": "text"}, "question": "b"}, "b"),
    ],
)
def test_the_usual_places(inputs: dict[str, Any], expected: str) -> None:
    assert find_question(inputs, MANY, "context") == expected


def test_it_can_be_named_or_computed() -> None:
    inputs = {"topic": "tea", "style": "short", "input": "other"}
    assert find_question(inputs, MANY, "context", "topic") == "tea"
    assert find_question(inputs, MANY, "context", lambda i: f"{i['topic']}, {i['style']}") == "tea, short"
    chain = create_robust_documents_chain(
        Reader(), MANY, question="topic", return_robustness=True, aggregation="keyword", final="always"
    )
    assert chain.invoke({**inputs, "context": truthful()})["robustness"].query == "tea"


def test_what_cannot_be_told_is_asked_for() -> None:
    with pytest.raises(ValueError, match=r"\['style', 'topic'\]; name it: question="):
        find_question({"topic": "tea", "style": "short"}, MANY, "context")
    with pytest.raises(ValueError, match="empty"):
        find_question({"input": " "}, MANY, "context")
    with pytest.raises(TypeError, match="question='topic'"):
        find_question({"topic": 3}, MANY, "context", "topic")


def test_a_question_that_is_no_text_is_named_with_its_type() -> None:
    with pytest.raises(
        ValueError, match=r"among \['input', 'style', 'topic'\], where 'input' is no text but int; name it"
    ):
        find_question({"input": 3, "topic": "tea", "style": "short"}, MANY, "context")
