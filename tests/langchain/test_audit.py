"""The audit at run time: stock wirings show several sources in one prompt, robust ones never do."""

from __future__ import annotations

from collections.abc import AsyncIterator
from operator import itemgetter
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnablePassthrough
from langchain_core.vectorstores import InMemoryVectorStore

from langchain_robustrag import (
    IsolationAudit,
    UndefendedError,
    audit_isolation,
    create_robust_retrieval_chain,
)
from tests.langchain.fakes import FINAL, PROMPT, QUESTION, ListRetriever, Reader, Recorder, planted, truthful

pytest.importorskip("langchain.agents", reason="needs langchain 1.x")
pytest.importorskip("langchain_classic", reason="needs langchain-classic")
from langchain_classic.chains import create_retrieval_chain
from langchain_classic.chains.combine_documents import create_stuff_documents_chain

DOCUMENTS = [*truthful(), planted()]
RETRIEVER = ListRetriever(documents=DOCUMENTS)
LLM = Reader()
ASKED = {"input": QUESTION}


def joined(documents: list[Document]) -> str:
    return "\n\n".join(d.page_content for d in documents)


def store() -> InMemoryVectorStore:
    found = InMemoryVectorStore(DeterministicFakeEmbedding(size=4))
    found.add_documents(DOCUMENTS)
    return found


STUFF = create_stuff_documents_chain(LLM, PROMPT)


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
    assert not audit._runs._open
    assert not audit._own
    shape = [sorted((str(r["name"]), tuple(x.ancestors(r))) for r in x.runs.values()) for x in (recorder, audited)]
    assert shape[0] == shape[1]
