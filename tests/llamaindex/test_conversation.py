"""Greetings and questions about the conversation get a reply in the chat engines, without documents, and say so."""

from __future__ import annotations

import pytest
from llama_index.core.base.llms.types import ChatMessage

from llamaindex_robustrag import RobustContextChatEngine, VoteRules, robust_answer
from robustrag_integrations.text.prompts import ABSTENTION
from tests.llamaindex.fakes import EVIL, QUESTION, AsyncFactReader, index_of, truthful
from tests.llamaindex.test_chat_engines import ENGINES, METHODS, engine_of, say

HISTORY = [
    ChatMessage(role="user", content="I am Ada. Where is France?"),
    ChatMessage(role="assistant", content="In Europe."),
]


class Sociable(AsyncFactReader):
    """Reads facts, greets, and remembers names."""

    def _said(self, prompt: str) -> str:
        if self.fails_on is not None and self.fails_on in prompt:
            raise ConnectionError("content filter")
        if "standalone question" in prompt.lower():
            return "Who is meant?"
        if "No document answers" in prompt:
            last = prompt.rsplit("user:", 1)[-1]
            if "Hello" in last:
                return "Hello! What would you like to know?"
            return "You are Ada." if "Who am I" in last and "I am Ada" in prompt else ABSTENTION
        return super()._said(prompt)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("engine_class", ENGINES)
async def test_a_greeting_is_returned_without_documents_and_says_so(engine_class: type, method: str) -> None:
    llm = Sociable()
    engine = engine_of(engine_class, index_of(["Rain falls.", "Snow falls."]), llm)
    text, reply = await say(engine, method, "Hello there")
    assert text == "Hello! What would you like to know?"
    answer = robust_answer(reply)
    assert not answer.abstained
    assert answer.text == text
    assert any("without documents" in warning for warning in answer.warnings)
    assert answer.evidence["answered_from"] == "conversation"
    assert answer.spending.calls == answer.model_calls == 3
    assert not any("falls" in prompt for prompt in llm.seen[2:])
    assert [m.content for m in engine.chat_history] == ["Hello there", text]
    assert reply.source_nodes == []


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("engine_class", ENGINES)
async def test_a_question_about_the_conversation_is_answered_from_it(engine_class: type, method: str) -> None:
    engine = engine_of(engine_class, index_of(["Rain falls.", "Snow falls."]), Sociable())
    text, reply = await say(engine, method, "Who am I?", chat_history=list(HISTORY))
    assert text == "You are Ada."
    assert robust_answer(reply).evidence["answered_from"] == "conversation"


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("engine_class", ENGINES)
async def test_what_neither_documents_nor_conversation_answer_is_an_abstention(engine_class: type, method: str) -> None:
    engine = engine_of(engine_class, index_of(["Rain falls.", "Snow falls."]), Sociable())
    text, reply = await say(engine, method, "Who is the pope?")
    assert text == ABSTENTION
    assert robust_answer(reply).abstained
    assert len(reply.source_nodes) == 2


def test_its_radius_is_that_of_the_abstention() -> None:
    """A document within the radius cannot make the documents answer, and reaches this prompt in no other way."""
    index = index_of(["Rain falls."] * 3)
    replies = [
        engine_of(RobustContextChatEngine, index, Sociable(), small_talk=small_talk).chat("Hello there")
        for small_talk in (False, True)
    ]
    first, second = [robust_answer(reply) for reply in replies]
    assert first.abstained
    assert not second.abstained
    assert first.radius == second.radius == 0
    planted = engine_of(RobustContextChatEngine, index_of([f"{EVIL} {n}" for n in range(3)]), Sociable()).chat(
        "Hello there"
    )
    assert str(planted) == "Berlin"


@pytest.mark.parametrize("engine_class", ENGINES)
def test_a_withheld_answer_stays_withheld(engine_class: type) -> None:
    llm = Sociable()
    engine = engine_of(engine_class, index_of(truthful(2)), llm, votes=VoteRules(min_radius=5))
    reply = engine.chat(QUESTION)
    assert robust_answer(reply).abstained
    assert not any("No document answers" in prompt for prompt in llm.seen)


class Says(Sociable):
    """Gives an answer of its own where a document rains, whatever it is asked."""

    def _said(self, prompt: str) -> str:
        return "Velmora" if "Rain" in prompt else super()._said(prompt)


@pytest.mark.parametrize("other", ["Snow falls.", "The capital of France is Paris."])
def test_what_a_document_answers_is_not_replaced(other: str) -> None:
    llm = Says()
    index = index_of(["Rain falls.", other, *["Snow falls."] * 3])
    answer = robust_answer(engine_of(RobustContextChatEngine, index, llm, disagreement="abstain").chat("Hello there"))
    assert (answer.abstained, answer.radius, "answered_from" in answer.evidence) == ("Paris" in other, 0, False)
    assert not any("No document answers" in prompt for prompt in llm.seen)


@pytest.mark.parametrize("method", METHODS)
async def test_an_abstention_of_ones_own_is_shown_and_not_what_the_model_says(method: str) -> None:
    index = index_of(["Rain falls.", "Snow falls."])
    engine = engine_of(RobustContextChatEngine, index, Sociable(), abstention="Not in our files.")
    for message, said in (("Who is the pope?", "Not in our files."), ("Hello", "Hello! What would you like to know?")):
        text, reply = await say(engine, method, message, chat_history=[])
        assert (text, robust_answer(reply).text) == (said, said)
