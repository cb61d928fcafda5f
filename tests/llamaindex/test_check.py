"""`assert_defended`: one question under the audit, with canaries, and no word of praise for what it does not know."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from functools import partial
from typing import Any

import pytest
from llama_index.core import VectorStoreIndex
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.base.llms.types import ChatResponse
from llama_index.core.chat_engine import CondenseQuestionChatEngine
from llama_index.core.indices.list.retrievers import SummaryIndexLLMRetriever
from llama_index.core.postprocessor import LLMRerank, LongContextReorder, MetadataReplacementPostProcessor
from llama_index.core.query_engine import CitationQueryEngine
from llama_index.core.retrievers import BaseRetriever, QueryFusionRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
from llama_index.core.tools import FunctionTool, RetrieverTool
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
from tests.llamaindex.fakes import QUESTION, WordEmbedding, index_of, truthful

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
    return "A page about France."


def add(input: str) -> int:
    """Add."""
    return 3


def fails(input: str) -> str:
    """Fail."""
    raise ConnectionError("no connection")


def kinds(raised: Any) -> set[tuple[str, str]]:
    return {(finding.kind, *finding.origins[:1]) for finding in raised.value.findings if finding.kind == "canary"}


STOCK: dict[str, Any] = {
    "query engine": lambda: INDEX.as_query_engine(llm=Obeying()),
    "tree": lambda: INDEX.as_query_engine(llm=Obeying(), response_mode="tree_summarize"),
    "citations": lambda: CitationQueryEngine.from_args(INDEX, llm=Obeying()),
    "retriever tool": lambda: agent(RetrieverTool.from_defaults(retriever(), name="found"), plan=["found"]),
    **{
        mode: lambda mode=mode: INDEX.as_chat_engine(
            chat_mode=mode, llm=Obeying(), response_synthesizer=RobustRAGSynthesizer(llm=Obeying())
        )
        for mode in ("context", "condense_plus_context", "condense_question", "best")
    },
}


@pytest.mark.parametrize("name", STOCK)
def test_stock_programs_are_found(name: str) -> None:
    with pytest.raises(
        UndefendedError, match="canary that was planted in what 'VectorIndexRetriever' returned"
    ) as raised:
        assert_defended(STOCK[name](), QUESTION)
    assert kinds(raised) == {("canary", "VectorIndexRetriever")}


@pytest.mark.parametrize("kind", [RobustContextChatEngine, RobustCondensePlusContextChatEngine])
async def test_robust_chat_engines_pass_each_way(kind: Any) -> None:
    chat = kind.from_defaults(retriever(), llm=Obeying())
    assert await aassert_defended(chat, QUESTION)
    assert await asyncio.to_thread(assert_defended, kind.from_defaults(retriever(), llm=Obeying()), QUESTION)


def test_text_of_a_tool_is_found_unless_it_is_trusted() -> None:
    with pytest.raises(UndefendedError, match=r"what 'web' returned.*goes into pass_through=") as raised:
        assert_defended(agent(facts(), web, plan=["facts", "web"]), QUESTION)
    assert ("canary", "web") in kinds(raised)
    checked = assert_defended(agent(facts(), web, plan=["facts", "web"]), QUESTION, pass_through=["web"])
    assert checked.not_vouched_for == ("web (taken on trust)",)


def test_tools_that_act_are_replaced_and_what_did_not_run_is_named() -> None:
    sent = []

    def send_mail(input: str) -> str:
        """Send a mail."""
        sent.append(input)
        return "sent"

    def program() -> FunctionAgent:
        return agent(facts(), send_mail, add, web, fails, plan=["facts", "send_mail", "add", "fails"])

    checked = assert_defended(program(), QUESTION, stubs={"send_mail": "sent"})
    assert sent == []
    assert set(checked.not_vouched_for) == {
        "web (did not run)",
        "fails (failed: ConnectionError)",
        "send_mail (replaced by a stub)",
    }
    assert "web (did not run)" in str(checked)
    with pytest.raises(ValueError, match="no tool is named 'sendmail'"):
        assert_defended(program(), QUESTION, stubs={"sendmail": "sent"})
    assert sent == []  # it is told before anything runs
    with pytest.raises(ValueError, match="no tool is named 'wed'"):
        assert_defended(program(), QUESTION, pass_through=["wed"], stubs={"send_mail": "sent"})


def test_the_window_around_a_sentence_is_planted_too() -> None:
    nodes = [TextNode(text=text, metadata={"window": f"{text} So it is.", "file_path": text}) for text in truthful()]
    index = VectorStoreIndex(nodes, embed_model=WordEmbedding())
    window = [MetadataReplacementPostProcessor(target_metadata_key="window")]
    with pytest.raises(UndefendedError, match="canary"):
        assert_defended(index.as_query_engine(llm=Obeying(), similarity_top_k=1, node_postprocessors=window), QUESTION)
    robust = RobustRAGQueryEngine.from_args(index.as_retriever(), llm=Obeying(), node_postprocessors=window)
    assert assert_defended(robust, QUESTION)


class Keeping(BaseRetriever):
    """Returns the same list each time."""

    def __init__(self) -> None:
        super().__init__()
        self.kept = [NodeWithScore(node=TextNode(text=text, id_=text)) for text in truthful()]

    def retrieve(self, str_or_query_bundle: Any) -> list[NodeWithScore]:
        return self.kept

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return self.kept


def test_nothing_stays_in_retrievers_and_classes() -> None:
    inner = Keeping()
    before = [node.node.model_dump() for node in inner.kept]
    methods = (Keeping.retrieve, FunctionTool.call, Obeying.chat, BaseRetriever.aretrieve)
    fused = QueryFusionRetriever([inner, retriever()], llm=Obeying(), num_queries=1, use_async=False)
    for each in (inner, fused):
        checked = assert_defended(RobustRAGQueryEngine.from_args(each, llm=Obeying()), QUESTION)
        assert checked.planted == (type(each).__name__,)
    assert [node.node.model_dump() for node in inner.kept] == before
    assert methods == (Keeping.retrieve, FunctionTool.call, Obeying.chat, BaseRetriever.aretrieve)


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
    for check in (aassert_defended, lambda *given: asyncio.to_thread(assert_defended, *given)):
        with pytest.raises(UndefendedError, match="canary"):
            await check(Raw(), {"query": QUESTION})


# What constructors refuse at once.


@pytest.mark.parametrize(
    ("parts", "why"),
    [
        (
            {"retriever": SummaryIndexLLMRetriever.__new__(SummaryIndexLLMRetriever)},
            "one prompt hold the texts of several",
        ),
        ({"node_postprocessors": [LLMRerank(llm=Obeying(), top_n=2)]}, "a reranker that reads each by itself"),
        ({"node_postprocessors": LongContextReorder()}, "must be a list"),
        ({"retriever": INDEX}, r"must have retrieve\(\), got VectorStoreIndex; give index.as_retriever"),
        ({"retriever": None}, "got NoneType; give index.as_retriever"),
    ],
    ids=["retriever", "reranker", "no list", "index", "nothing"],
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


@pytest.mark.parametrize("way", ["stream_chat", "astream_chat"])
async def test_streams_of_functions_are_read(way: str) -> None:
    for reader, defended in (("people", False), ("model", True)):
        chat = CondenseQuestionChatEngine.from_defaults(engine(reader=reader), llm=Obeying())
        asked = getattr(chat, way)
        check: Any = aassert_defended if way[0] == "a" else partial(asyncio.to_thread, assert_defended)
        if defended:
            assert (await check(asked, QUESTION)).planted
        else:
            with pytest.raises(UndefendedError):
                await check(asked, QUESTION)
