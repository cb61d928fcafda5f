"""The audit at run time: stock wirings show several sources in one prompt, robust ones never do."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from llama_index.core import VectorStoreIndex
from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.response_synthesizers import get_response_synthesizer
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle

from llamaindex_robustrag import (
    RobustCondensePlusContextChatEngine,
    RobustContextChatEngine,
    RobustRAGQueryEngine,
    RobustRAGSynthesizer,
    UndefendedError,
    audit_isolation,
)
from tests.llamaindex.fakes import EVIL, QUESTION, AsyncFactReader, Capital, FactReader, index_of, nodes_of, truthful

INDEX = index_of([*truthful(), EVIL])
LLM = FactReader()
CHAT = AsyncFactReader()
K = {"similarity_top_k": 7}


class Mine(BaseRetriever):
    """A retriever of the program's own."""

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return nodes_of([*truthful(), EVIL])


def joined(nodes: Sequence[NodeWithScore]) -> str:
    return "\n\n".join(n.get_content() for n in nodes)


def plain(question: str = QUESTION) -> Any:
    return LLM.complete(f"{joined(Mine().retrieve(question))}\n{question}").text


def streamed(engine: Any) -> str:
    return "".join(engine.query(QUESTION).response_gen)


async def astreamed(engine: Any) -> str:
    response = await engine.aquery(QUESTION)
    return "".join([piece async for piece in response.async_response_gen()])


STOCK: dict[str, Callable[[], Any]] = {
    "query engine": lambda: INDEX.as_query_engine(llm=LLM, **K).query(QUESTION),
    "tree": lambda: INDEX.as_query_engine(llm=LLM, response_mode="tree_summarize", **K).query(QUESTION),
    "asynchronous": lambda: asyncio.run(INDEX.as_query_engine(llm=CHAT, **K).aquery(QUESTION)),
    "streamed": lambda: streamed(INDEX.as_query_engine(llm=CHAT, streaming=True, **K)),
    "chat engine": lambda: INDEX.as_chat_engine(chat_mode="context", llm=CHAT, **K).chat(QUESTION),
    "condensing": lambda: INDEX.as_chat_engine(chat_mode="condense_plus_context", llm=CHAT, **K).chat(QUESTION),
    "synthesizer alone": lambda: get_response_synthesizer(llm=LLM).synthesize(QUESTION, nodes=nodes_of(truthful())),
    "function": plain,
    "documents in the conversation": lambda: RobustContextChatEngine.from_defaults(
        retriever=INDEX.as_retriever(**K), llm=CHAT
    ).chat(QUESTION, chat_history=[ChatMessage(content=joined(nodes_of(truthful())))]),
}


@pytest.mark.parametrize("name", STOCK)
def test_stock_wirings_are_found(name: str) -> None:
    with audit_isolation() as audit:
        STOCK[name]()
    assert audit.findings
    assert all(len(f.origins) > 1 and f.kind == "prompt" and f.path and f.fix for f in audit.findings)


ROBUST = RobustRAGQueryEngine.from_args(INDEX.as_retriever(**K), llm=CHAT)
LONG = "Two say: The capital of France is Paris. Source number 1. And: The capital of France is Paris. Source number 2."


def chatting(kind: Any) -> Any:
    engine = kind.from_defaults(retriever=INDEX.as_retriever(**K), llm=CHAT)
    return [engine.chat(QUESTION), engine.chat(f"Again: {QUESTION}")]


def quoting() -> Any:
    said = RobustRAGQueryEngine.from_args(Mine(), llm=Quoter()).query(QUESTION)
    return LLM.complete(f"Translate: {said}")


class Quoter(FactReader):
    def _said(self, prompt: str) -> str:
        return LONG


DEFENDED: dict[str, Callable[[], Any]] = {
    "query engine": lambda: ROBUST.query(QUESTION),
    "asynchronous": lambda: asyncio.run(ROBUST.aquery(QUESTION)),
    "streamed": lambda: streamed(RobustRAGQueryEngine.from_args(INDEX.as_retriever(**K), llm=CHAT, streaming=True)),
    "asynchronous stream": lambda: asyncio.run(
        astreamed(RobustRAGQueryEngine.from_args(INDEX.as_retriever(**K), llm=CHAT, streaming=True))
    ),
    "completion model": lambda: RobustRAGQueryEngine.from_args(Mine(), llm=LLM).query(QUESTION),
    "consensus": lambda: RobustRAGQueryEngine.from_args(Mine(), llm=LLM, method="consensus").query(QUESTION),
    "structured": lambda: RobustRAGQueryEngine.from_args(Mine(), llm=LLM, output_cls=Capital).query(QUESTION),
    "sites": lambda: RobustRAGSynthesizer(llm=LLM, group_by="site").synthesize(QUESTION, nodes=nodes_of(truthful())),
    "texts": lambda: RobustRAGSynthesizer(llm=LLM).get_response(QUESTION, truthful()),
    "chat engine": lambda: chatting(RobustContextChatEngine),
    "condensing": lambda: chatting(RobustCondensePlusContextChatEngine),
    "one source": lambda: LLM.complete(joined(nodes_of(truthful(), ["one"] * 6))),
    "the answer goes on": quoting,
    "no documents": lambda: LLM.complete(QUESTION),
}


@pytest.mark.parametrize("name", DEFENDED)
def test_robust_wirings_are_not(name: str) -> None:
    if name == "sites":
        pytest.importorskip("tldextract", reason="the extra site is not installed")
    with audit_isolation() as audit:
        DEFENDED[name]()
    assert audit.findings == []


def test_the_path_leads_to_the_prompt() -> None:
    with audit_isolation() as audit:
        INDEX.as_query_engine(llm=LLM, **K).query(QUESTION)
    (finding,) = audit.findings
    assert finding.path.startswith("RetrieverQueryEngine.query > ")
    assert finding.path.endswith("FactReader.complete")
    assert finding.component == "FactReader"
    assert "RobustRAGQueryEngine" in finding.fix
    with audit_isolation("raise"), pytest.raises(UndefendedError, match="besides what was isolated"):
        STOCK["documents in the conversation"]()


def test_an_llm_whose_class_is_made_later_is_seen_and_stopped(clean: VectorStoreIndex) -> None:
    init = FactReader.__init__
    with audit_isolation("raise") as audit:

        class Later(FactReader):
            def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> Any:
                return super().complete(prompt)

        llm = Later()
        audit.learn(n.node for n in clean.as_retriever(similarity_top_k=6).retrieve(QUESTION))
        with pytest.raises(UndefendedError):
            llm.complete(" ".join(truthful()))
        assert llm.seen == []
    llm.complete(" ".join(truthful()))
    assert FactReader.__init__ is init


def test_nothing_is_kept_of_calls_that_ended() -> None:
    with audit_isolation() as audit:
        ROBUST.query(QUESTION)
        with pytest.raises(ConnectionError):
            INDEX.as_query_engine(llm=FactReader(fails_on="France"), **K).query(QUESTION)
    assert not audit._listener._spans
