"""Completion models in an event loop: traces and event streams learn of each of their runs, from its start on."""

from __future__ import annotations

from collections import Counter
from typing import Any
from uuid import UUID

import pytest
from langchain_core.callbacks import AsyncCallbackHandler, BaseCallbackHandler
from langchain_core.documents import Document
from langchain_core.language_models import FakeListLLM
from langchain_core.prompts import PromptTemplate
from langchain_core.runnables import Runnable, RunnableLambda

from langchain_robustrag import create_robust_documents_chain, create_robust_node, create_robust_retrieval_chain

DOCUMENTS = [Document(f"Bo Ek built it, says {name}.", metadata={"source": name}) for name in "abc"]
LLM = FakeListLLM(responses=["Bo Ek"])


def retrieved(question: Any) -> list[Document]:
    return DOCUMENTS


class Listening(BaseCallbackHandler):
    """What a tracer sees: which models' runs began, and which ended."""

    def __init__(self) -> None:
        self.begun: list[UUID] = []
        self.ended: list[UUID] = []

    def on_llm_start(self, serialized: Any, prompts: Any, *, run_id: UUID, **kwargs: Any) -> None:
        self.begun.append(run_id)

    def on_llm_end(self, response: Any, *, run_id: UUID, **kwargs: Any) -> None:
        self.ended.append(run_id)


class ListeningInLoop(AsyncCallbackHandler):
    """The same with coroutines."""

    def __init__(self) -> None:
        self.seen = Listening()
        self.begun, self.ended = self.seen.begun, self.seen.ended

    async def on_llm_start(self, *args: Any, **kwargs: Any) -> None:
        self.seen.on_llm_start(*args, **kwargs)

    async def on_llm_end(self, *args: Any, **kwargs: Any) -> None:
        self.seen.on_llm_end(*args, **kwargs)


@pytest.mark.parametrize("kind", [Listening, ListeningInLoop])
async def test_a_handler_learns_of_the_start_and_the_end_of_each_run(kind: type[Any]) -> None:
    heard = kind()
    chain = create_robust_documents_chain(LLM, group_by="source", aggregation="keyword", final="always")
    answer = await chain.ainvoke({"input": "Who built it?", "context": DOCUMENTS}, {"callbacks": [heard]})
    assert answer == "Bo Ek"
    assert len(heard.begun) == 4
    assert sorted(heard.begun) == sorted(heard.ended)


async def test_events_of_models_come_from_their_start_on(caplog: pytest.LogCaptureFixture) -> None:
    chain = create_robust_documents_chain(LLM, group_by="source", aggregation="keyword", final="always")
    given = {"input": "Who built it?", "context": DOCUMENTS}
    kinds = Counter([event["event"] async for event in chain.astream_events(given, version="v2")])
    assert kinds["on_llm_start"] == kinds["on_llm_end"] == 4
    assert not caplog.records


async def test_a_graph_node_hides_no_run_from_a_tracer() -> None:
    pytest.importorskip("langgraph")
    heard = Listening()
    node = create_robust_node(LLM, group_by="source", aggregation="keyword", final="always")
    state = {"question": "Who built it?", "context": DOCUMENTS}
    written = await node.ainvoke(state, {"callbacks": [heard]})
    assert written["answer"] == "Bo Ek"
    assert sorted(heard.begun) == sorted(heard.ended)
    assert len(heard.begun) == 4


async def test_the_run_of_a_model_within_a_retriever_is_no_secret_either() -> None:
    rewritten: Runnable[Any, Any] = PromptTemplate.from_template("{input}") | LLM | RunnableLambda(retrieved)
    heard = Listening()
    chain = create_robust_retrieval_chain(rewritten, LLM, group_by="source", aggregation="keyword", final="always")
    await chain.ainvoke({"input": "Who built it?"}, {"callbacks": [heard]})
    assert len(heard.begun) == 5
    assert sorted(heard.begun) == sorted(heard.ended)
