"""The audit at run time: stock wirings show several sources in one prompt, robust ones never do."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from operator import itemgetter
from typing import Any, cast

import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.language_models import FakeListLLM
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableLambda, RunnablePassthrough
from langchain_core.tools import create_retriever_tool, tool
from langchain_core.vectorstores import InMemoryVectorStore

from langchain_robustrag import (
    IsolationAudit,
    UndefendedError,
    VoteRules,
    audit_isolation,
    create_robust_documents_chain,
    create_robust_node,
    create_robust_retrieval_chain,
)
from tests.langchain.fakes import FINAL, PROMPT, QUESTION, ListRetriever, Reader, Recorder, planted, truthful

pytest.importorskip("langchain.agents", reason="needs langchain 1.x")
pytest.importorskip("langchain_classic", reason="needs langchain-classic")
from langchain.agents import create_agent
from langchain_classic.chains import create_retrieval_chain
from langchain_classic.chains.combine_documents import create_stuff_documents_chain
from langgraph.graph import END, START, StateGraph

from langchain_robustrag.middleware import RobustRetrievalMiddleware
from tests.langchain.test_agents import GullibleAgent

DOCUMENTS = [*truthful(), planted()]
RETRIEVER = ListRetriever(documents=DOCUMENTS)
LLM = Reader()
ASKED = {"input": QUESTION}
MESSAGES: Any = {"messages": [HumanMessage(QUESTION)]}
SEARCH = create_retriever_tool(RETRIEVER, "search", "Searches.", response_format="content_and_artifact")


def joined(documents: list[Document]) -> str:
    return "\n\n".join(d.page_content for d in documents)


def store() -> InMemoryVectorStore:
    found = InMemoryVectorStore(DeterministicFakeEmbedding(size=4))
    found.add_documents(DOCUMENTS)
    return found


def plain(question: str = QUESTION) -> Any:
    return LLM.invoke(f"{joined(RETRIEVER.invoke(question))}\n{question}").content


@tool("search")
def json_search(query: str) -> str:
    """Searches, and returns JSON."""
    return json.dumps([{"url": d.metadata["source"], "content": d.page_content} for d in DOCUMENTS])


def graph(answer: Callable[[dict[str, Any]], Any]) -> Any:
    steps: Any = StateGraph(cast("type[Any]", dict))
    steps.add_node("retrieve", lambda state: {**ASKED, "context": RETRIEVER.invoke(state["input"])})
    steps.add_node("answer", answer)
    steps.add_edge(START, "retrieve")
    steps.add_edge("retrieve", "answer")
    steps.add_edge("answer", END)
    return steps.compile()


STUFF = create_stuff_documents_chain(LLM, PROMPT)
STOCK: dict[str, Callable[[], Any]] = {
    "retrieval chain": lambda: create_retrieval_chain(RETRIEVER, STUFF).invoke(ASKED),
    "lcel": lambda: ({"context": RETRIEVER | joined, "input": RunnablePassthrough()} | PROMPT | LLM).invoke(QUESTION),
    "function": plain,
    "store in a step": lambda: (
        RunnableLambda(lambda q: store().similarity_search(q, k=6)) | joined | LLM.with_retry()
    ).invoke(QUESTION),
    "completion model": lambda: (RETRIEVER | joined | FakeListLLM(responses=["Paris"])).invoke(QUESTION),
    "stream": lambda: list(create_retrieval_chain(RETRIEVER, STUFF).stream(ASKED)),
    "agent, JSON": lambda: create_agent(GullibleAgent(), [json_search]).invoke(MESSAGES),
    "graph": lambda: graph(lambda s: {"answer": LLM.invoke(joined(s["context"]))}).invoke(ASKED),
    "documents in the conversation": lambda: create_robust_documents_chain(
        LLM, ChatPromptTemplate.from_messages([("placeholder", "{history}"), ("human", "{context} {input}")]), **FINAL
    ).invoke({**ASKED, "context": DOCUMENTS, "history": [AIMessage(joined(DOCUMENTS))]}),
}


@pytest.mark.parametrize("name", STOCK)
def test_stock_wirings_are_found(name: str) -> None:
    with audit_isolation() as audit:
        STOCK[name]()
    assert audit.findings
    assert "https://evil.example" in {origin for f in audit.findings for origin in f.origins}
    assert all(f.kind == "prompt" and f.path and f.fix for f in audit.findings)


ROBUST = create_robust_documents_chain(LLM, PROMPT, **FINAL)
LONG = "It is written in Guide 0: the capital of France is Paris. And in Guide 1: the capital of France is Paris."


@tool
def weather(place: str) -> str:
    """Tells the weather."""
    return f"Sunny in {place}, with 25 degrees and a light wind from the west."


DEFENDED: dict[str, Callable[[], Any]] = {
    "retrieval chain": lambda: create_retrieval_chain(RETRIEVER, ROBUST).invoke(ASKED),
    "group of several": lambda: create_robust_documents_chain(
        LLM, PROMPT, votes=VoteRules(group_size=2), **FINAL
    ).invoke({**ASKED, "context": DOCUMENTS}),
    "stream": lambda: list(create_robust_retrieval_chain(RETRIEVER, LLM, **FINAL).stream(ASKED)),
    "middleware": lambda: create_agent(
        GullibleAgent(), [SEARCH], middleware=[RobustRetrievalMiddleware(LLM, PROMPT)]
    ).invoke(MESSAGES),
    "graph": lambda: graph(create_robust_node(LLM, PROMPT, **FINAL)).invoke(ASKED),
    "the answer goes on": lambda: (
        create_robust_retrieval_chain(RETRIEVER, Reader(answer=lambda _: LONG), **FINAL)
        | (lambda found: f"Translate: {found['answer']}")
        | LLM
    ).invoke(ASKED),
    "its chunks": lambda: STUFF.invoke(
        {**ASKED, "context": [Document(d.page_content, metadata={"source": "one.txt"}) for d in DOCUMENTS]}
    ),
    "ordinary tools": lambda: LLM.invoke(
        [HumanMessage(str(weather.invoke({"place": place}))) for place in ("Paris", "Tarsk", "Brezar")]
    ),
}


@pytest.mark.parametrize("name", DEFENDED)
def test_robust_wirings_and_ordinary_tools_are_not(name: str) -> None:
    with audit_isolation() as audit:
        DEFENDED[name]()
    assert audit.findings == []


async def _streamed(chain: Any) -> AsyncIterator[Any]:
    async for chunk in chain.astream(ASKED):
        yield chunk


async def test_event_loops_are_audited_alike() -> None:
    stock, robust = (create_retrieval_chain(RETRIEVER, STUFF), create_robust_retrieval_chain(RETRIEVER, LLM, **FINAL))
    with audit_isolation() as audit:
        await robust.ainvoke(ASKED)
        _ = [chunk async for chunk in _streamed(robust)]
        assert audit.findings == []
        await stock.ainvoke(ASKED)
        assert len(audit.findings) == 1
    with audit_isolation() as audit:
        _ = [chunk async for chunk in _streamed(stock)]
        assert len(audit.findings) == 1


def test_the_path_leads_to_the_prompt(caplog: pytest.LogCaptureFixture) -> None:
    with audit_isolation() as audit:
        create_retrieval_chain(RETRIEVER, STUFF).invoke(ASKED)
    (finding,) = audit.findings
    assert finding.path.startswith("retrieval_chain > ")
    assert finding.path.endswith("stuff_documents_chain > Reader")
    assert "create_robust_documents_chain" in finding.fix
    assert "retrieval_chain" in caplog.text


def test_a_handler_that_raises_stops_the_prompt() -> None:
    reader = Reader()
    stuff = create_stuff_documents_chain(reader, PROMPT)
    audit = IsolationAudit(on="raise")
    with pytest.raises(UndefendedError, match="of 6 sources"):
        create_retrieval_chain(RETRIEVER, stuff).invoke(ASKED, {"callbacks": [audit]})
    assert reader.prompts == []
    robust = create_robust_retrieval_chain(RETRIEVER, reader)
    assert robust.invoke(ASKED, {"callbacks": [audit]})["robustness"].radius == 1
    notes = ChatPromptTemplate.from_template("{context} {notes} {input}")
    chain = RunnablePassthrough.assign(notes=itemgetter("input") | RETRIEVER) | create_robust_retrieval_chain(
        RETRIEVER, reader, notes, **FINAL
    )
    with pytest.raises(UndefendedError, match="besides what was isolated"):
        chain.invoke(ASKED, {"callbacks": [audit]})


def test_what_no_event_shows_can_be_told() -> None:
    with audit_isolation() as audit:
        LLM.invoke(joined(store().similarity_search(QUESTION, k=6)))
        assert audit.findings == []
        audit.learn(DOCUMENTS)
        LLM.invoke(joined(store().similarity_search(QUESTION, k=6)))
    assert len(audit.findings) == 1


def test_nothing_is_kept_of_runs_that_ended_and_traces_stay_the_same() -> None:
    recorder, audited = Recorder(), Recorder()
    robust = create_robust_retrieval_chain(RETRIEVER, LLM, **FINAL)
    robust.invoke(ASKED, {"callbacks": [recorder]})
    with audit_isolation() as audit:
        robust.invoke(ASKED, {"callbacks": [audited]})
    assert not audit._runs
    assert not audit._own
    shape = [sorted((str(r["name"]), tuple(x.ancestors(r))) for r in x.runs.values()) for x in (recorder, audited)]
    assert shape[0] == shape[1]
