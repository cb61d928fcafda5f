"""`assert_defended`: one question under a strict audit."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.base.llms.types import ChatResponse
from llama_index.core.chat_engine import SimpleChatEngine
from llama_index.core.indices.list.retrievers import SummaryIndexLLMRetriever
from llama_index.core.postprocessor import LLMRerank, LongContextReorder
from llama_index.core.query_engine import CitationQueryEngine
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.tools import RetrieverTool
from llama_index.core.workflow import StartEvent, StopEvent, Workflow, step

from llamaindex_robustrag import (
    RobustCondensePlusContextChatEngine,
    RobustContextChatEngine,
    RobustQueryEngineTool,
    RobustRAGQueryEngine,
    RobustRAGSynthesizer,
    UndefendedError,
    aassert_defended,
    assert_defended,
    audit_isolation,
)
from tests.llamaindex.agents import Obeying
from tests.llamaindex.fakes import QUESTION, index_of, truthful

INDEX = index_of(truthful())


def retriever() -> BaseRetriever:
    return INDEX.as_retriever(similarity_top_k=6)


def engine(**settings: Any) -> RobustRAGQueryEngine:
    return RobustRAGQueryEngine.from_args(retriever(), llm=Obeying(), **settings)


def facts(name: str = "facts") -> RobustQueryEngineTool:
    return RobustQueryEngineTool.from_defaults(engine(), name=name, description=f"knows {name}")


def agent(*tools: Any, plan: list[str], **settings: Any) -> FunctionAgent:
    return FunctionAgent(tools=list(tools), llm=Obeying(plan=plan), **settings)


def web(input: str) -> str:
    """Search the web."""
    return "A page about France, as somebody out there wrote it."


STOCK: dict[str, Any] = {
    "query engine": lambda: INDEX.as_query_engine(llm=Obeying()),
    "tree": lambda: INDEX.as_query_engine(llm=Obeying(), response_mode="tree_summarize"),
    "citations": lambda: CitationQueryEngine.from_args(INDEX, llm=Obeying()),
    "retriever tool": lambda: agent(RetrieverTool.from_defaults(retriever(), name="found"), plan=["found"]),
    **{
        mode: lambda mode=mode: INDEX.as_chat_engine(
            chat_mode=mode, llm=Obeying(), response_synthesizer=RobustRAGSynthesizer(llm=Obeying())
        )
        for mode in ("context", "condense_plus_context", "best")
    },
}


@pytest.mark.parametrize("name", STOCK)
def test_stock_programs_are_found(name: str) -> None:
    with pytest.raises(UndefendedError, match=r"the prompt holds retrieved text of .*'doc-1'"):
        assert_defended(STOCK[name](), QUESTION)


@pytest.mark.parametrize("kind", [RobustContextChatEngine, RobustCondensePlusContextChatEngine])
@pytest.mark.parametrize("way", ["chat", "stream_chat", "achat", "astream_chat"])
async def test_robust_chat_engines_pass_each_way(kind: Any, way: str) -> None:
    chat = kind.from_defaults(retriever(), llm=Obeying())
    if way.startswith("a"):
        await aassert_defended(getattr(chat, way), QUESTION)
    else:
        await asyncio.to_thread(assert_defended, getattr(chat, way), QUESTION)


def test_text_of_a_tool_is_found_unless_it_is_trusted() -> None:
    with pytest.raises(UndefendedError, match=r"a text of [0-9]+ characters without a source"):
        assert_defended(agent(facts(), web, plan=["facts", "web"]), QUESTION)
    assert_defended(agent(facts(), web, plan=["facts", "web"]), QUESTION, trusted=["web"])


@pytest.mark.parametrize(
    "program",
    [lambda: SimpleChatEngine.from_defaults(llm=Obeying()), lambda: agent(facts(), web, plan=[])],
    ids=["chat", "agent"],
)
def test_where_nothing_was_retrieved_nothing_is_vouched_for(program: Any) -> None:
    with pytest.raises(UndefendedError, match="no retriever or tool returned a text"):
        assert_defended(program(), QUESTION)


class Own(Obeying):
    """An LLM that implements what agents call, and nothing that emits an event."""

    async def astream_chat_with_tools(self, tools: Any, chat_history: Any = None, **kwargs: Any) -> Any:
        message = self.acts(chat_history)

        async def pieces() -> AsyncIterator[ChatResponse]:
            yield ChatResponse(message=message, delta=message.content)

        return pieces()


@pytest.mark.parametrize("on", ["log", "raise"])
async def test_prompts_of_llms_without_events_are_seen(on: Any) -> None:
    reader = Own(plan=["found"])
    made = FunctionAgent(tools=[RetrieverTool.from_defaults(retriever(), name="found")], llm=reader)
    with audit_isolation(on) as audit:
        try:
            await made.run(user_msg=QUESTION)
        except UndefendedError:
            assert on == "raise"
    assert audit.findings[0].component == "Own"
    assert any(truthful()[0] in prompt for prompt in reader.seen) is (on == "log")


class Raw(Workflow):
    @step
    async def answer(self, event: StartEvent) -> StopEvent:
        found = await retriever().aretrieve(event.query)
        return StopEvent(result=(await Obeying().acomplete(found[0].text)).text)


async def test_workflows_are_asked_by_a_mapping() -> None:
    with pytest.raises(UndefendedError, match="retrieved text"):
        await aassert_defended(Raw(), {"query": QUESTION})
    with pytest.raises(UndefendedError, match="retrieved text"):
        assert_defended(Raw(), {"query": QUESTION})  # within a running loop


# What constructors refuse at once.


@pytest.mark.parametrize(
    ("parts", "why"),
    [
        (
            {"retriever": SummaryIndexLLMRetriever.__new__(SummaryIndexLLMRetriever)},
            "one prompt holds the texts of several",
        ),
        ({"node_postprocessors": [LLMRerank(llm=Obeying(), top_n=2)]}, "a reranker that reads each by itself"),
        ({"node_postprocessors": LongContextReorder()}, "must be a list"),
        ({"retriever": INDEX}, r"must have retrieve\(\), got VectorStoreIndex; give index.as_retriever\(\)"),
    ],
    ids=["retriever", "reranker", "no list", "index"],
)
@pytest.mark.parametrize(
    "make", [RobustRAGQueryEngine.from_args, RobustContextChatEngine.from_defaults], ids=["engine", "chat"]
)
def test_parts_that_join_documents_are_refused(make: Any, parts: dict[str, Any], why: str) -> None:
    with pytest.raises(TypeError, match=why):
        make(**{"retriever": retriever(), "llm": Obeying(), **parts})
    assert make(retriever(), llm=Obeying(), node_postprocessors=[LongContextReorder()])


class Searching(Obeying):
    """An LLM whose provider searches the web."""

    built_in_tools: list[Any] | None = None


async def test_tools_that_a_provider_runs_are_refused_and_found() -> None:
    searching = Searching(built_in_tools=[{"type": "web_search_preview"}])
    with pytest.raises(TypeError, match="runs web_search_preview, and what that finds is not isolated"):
        RobustRAGSynthesizer(llm=searching)
    RobustRAGSynthesizer(llm=Searching())
    with audit_isolation() as audit:
        searching.chat([])
        Obeying().complete("Hello", web_search_options={"search_context_size": "low"})
        Obeying().complete("Hello", tools=[{"type": "function", "function": {"name": "add"}}])
    assert [finding.kind for finding in audit.findings] == ["hosted-tool"] * 2
    assert "web_search_options" in audit.findings[1].problem
