"""Chat engines: all four methods, history, the report, and what LlamaIndex's own do with a planted document."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from llama_index.core import VectorStoreIndex
from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.memory import ChatMemoryBuffer
from llama_index.core.response_synthesizers import get_response_synthesizer

from llamaindex_robustrag import (
    CallOptions,
    RobustCondensePlusContextChatEngine,
    RobustContextChatEngine,
    RobustRAGSynthesizer,
)
from robustrag_integrations import QuorumError
from tests.llamaindex.fakes import EVIL, QUESTION, AsyncFactReader, Capital, FactReader

ENGINES = [RobustContextChatEngine, RobustCondensePlusContextChatEngine]
METHODS = ["chat", "stream_chat", "achat", "astream_chat"]


def engine_of(engine_class: type, index: VectorStoreIndex, llm: FactReader, **arguments: Any) -> Any:
    return engine_class.from_defaults(index.as_retriever(similarity_top_k=7), llm=llm, **arguments)


async def say(engine: Any, method: str, message: str, **more: Any) -> tuple[str, Any]:
    """The reply's text, and the reply."""
    given = getattr(engine, method)(message, **more)
    reply = await given if method.startswith("a") else given
    if method == "stream_chat":
        return "".join(reply.response_gen), reply
    if method == "astream_chat":
        return "".join([piece async for piece in reply.async_response_gen()]), reply
    return str(reply), reply


@pytest.mark.parametrize("llm_class", [FactReader, AsyncFactReader])
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("engine_class", ENGINES)
async def test_every_method_answers_robustly_and_reports(
    poisoned: VectorStoreIndex, engine_class: type, method: str, llm_class: type[FactReader]
) -> None:
    engine = engine_of(engine_class, poisoned, llm_class())
    text, reply = await say(engine, method, QUESTION)
    assert text == "Paris"
    report = reply.metadata["robustrag"]
    assert report["text"] == "Paris"
    assert report["radius"] >= 1
    assert reply.sources[-1].tool_name == "robustrag"
    assert reply.sources[-1].raw_output.metadata["robustrag"] == report
    assert len(reply.source_nodes) == 7
    assert [m.content for m in engine.chat_history] == [QUESTION, "Paris"]


@pytest.mark.parametrize("method", METHODS)
async def test_the_conversation_stands_in_front_of_each_prompt_of_a_context_engine(
    poisoned: VectorStoreIndex, llm: FactReader, method: str
) -> None:
    engine = engine_of(RobustContextChatEngine, poisoned, llm, system_prompt="Be brief.")
    await say(engine, method, "Tell me about the capital of France")
    llm.seen.clear()
    text, reply = await say(engine, method, QUESTION)
    assert text == "Paris"
    assert len(llm.seen) == 7
    assert all("Be brief." in prompt and "Tell me about" in prompt for prompt in llm.seen)
    assert not any(EVIL in prompt and "number 0" in prompt for prompt in llm.seen)
    assert any("holds 1 earlier answer" in w for w in reply.metadata["robustrag"]["warnings"])
    assert len(engine.chat_history) == 4


@pytest.mark.parametrize(
    ("engine_class", "said"),
    [(RobustContextChatEngine, "holds 1 tool result"), (RobustCondensePlusContextChatEngine, "holds 1 tool result")],
)
def test_what_tools_returned_earlier_is_warned_of(
    poisoned: VectorStoreIndex, llm: FactReader, engine_class: Any, said: str
) -> None:
    history = [ChatMessage(role="user", content="Look it up."), ChatMessage(role="tool", content=EVIL)]
    reply = engine_of(engine_class, poisoned, llm).chat(QUESTION, chat_history=history)
    assert any(said in warning for warning in reply.metadata["robustrag"]["warnings"])


@pytest.mark.parametrize("method", METHODS)
async def test_a_condensed_question_is_what_every_source_is_asked(
    poisoned: VectorStoreIndex, llm: FactReader, method: str
) -> None:
    history = [ChatMessage(role="user", content="Where is France?"), ChatMessage(role="assistant", content="In Europe")]
    engine = engine_of(RobustCondensePlusContextChatEngine, poisoned, llm)
    text, reply = await say(engine, method, "And its main city?", chat_history=history)
    assert text == "Paris"
    assert reply.metadata["robustrag"]["query"] == QUESTION
    assert any("holds 1 earlier answer" in w for w in reply.metadata["robustrag"]["warnings"])
    assert "In Europe" in llm.seen[0]
    assert not any("In Europe" in prompt or "main city" in prompt for prompt in llm.seen[1:])
    assert reply.metadata["robustrag"]["decided_by"] == "conversation"  # nobody knows who said "In Europe"
    held = [m.content for m in engine.chat_history]
    assert held == ["Where is France?", "In Europe", "And its main city?", "I don't know"]


@pytest.mark.parametrize("engine_class", ENGINES)
async def test_a_blocking_llm_is_never_called_on_the_event_loop(poisoned: VectorStoreIndex, engine_class: type) -> None:
    llm = FactReader()
    engine = engine_of(engine_class, poisoned, llm)
    for method in ("achat", "astream_chat", "achat"):
        await say(engine, method, QUESTION)
    assert threading.get_ident() not in llm.script.threads


@pytest.mark.parametrize("engine_class", ENGINES)
def test_a_given_synthesizer_and_its_settings_are_used(poisoned: VectorStoreIndex, engine_class: type) -> None:
    given = RobustRAGSynthesizer(llm=FactReader(), method="keyword", alpha=0.5)
    engine = engine_class.from_defaults(poisoned.as_retriever(similarity_top_k=7), response_synthesizer=given)
    reply = engine.chat(QUESTION)
    assert reply.metadata["robustrag"]["settings"]["alpha"] == "1/2"
    assert engine.response_synthesizer is given
    with pytest.raises(TypeError, match="must be a RobustRAGSynthesizer"):
        engine_class.from_defaults(
            poisoned.as_retriever(), response_synthesizer=get_response_synthesizer(llm=FactReader())
        )
    with pytest.raises(TypeError, match=r"unknown argument .context_template"):
        engine_of(engine_class, poisoned, FactReader(), context_template="{context_str}")


@pytest.mark.parametrize("engine_class", ENGINES)
def test_an_engine_made_with_its_constructor_is_robust_too(poisoned: VectorStoreIndex, engine_class: type) -> None:
    arguments = {"prefix_messages": []} if engine_class is RobustContextChatEngine else {}
    memory = ChatMemoryBuffer.from_defaults(token_limit=2000)
    engine = engine_class(poisoned.as_retriever(similarity_top_k=7), FactReader(), memory, **arguments)
    assert str(engine.chat(QUESTION)) == "Paris"


@pytest.mark.parametrize("engine_class", ENGINES)
def test_a_structured_final_answer_keeps_the_conversation(poisoned: VectorStoreIndex, engine_class: type) -> None:
    llm = FactReader()
    engine = engine_of(engine_class, poisoned, llm, output_cls=Capital, system_prompt="Be {brief}.")
    reply = engine.chat(QUESTION)
    assert reply.sources[-1].raw_output.response == Capital(name="Paris")
    assert "Be {brief}." in llm.seen[-1]


@pytest.mark.parametrize("engine_class", ENGINES)
@pytest.mark.parametrize("method", METHODS)
async def test_too_many_failures_raise_at_once_and_leave_no_half_turn(
    poisoned: VectorStoreIndex, engine_class: type, method: str
) -> None:
    engine = engine_of(engine_class, poisoned, FactReader(fails_on="Text:"), calls=CallOptions(attempts=1))
    with pytest.raises(QuorumError):
        await say(engine, method, QUESTION)
    assert engine.chat_history == []
