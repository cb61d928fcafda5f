"""The chain classes of langchain-classic."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

from tests.langchain.fakes import PROMPT, QUESTION, ListRetriever, Reader, Recorder

pytest.importorskip("langchain_classic", reason="needs langchain-classic")
from langchain_classic.chains import RetrievalQA
from langchain_core.prompts import ChatPromptTemplate

from langchain_robustrag.classic import RobustDocumentsChain

QA_PROMPT = ChatPromptTemplate.from_messages([("system", "{context}"), ("human", "{question}")])


def retrieval_qa(retriever: ListRetriever, reader: Reader, **options: Any) -> Any:
    combine = RobustDocumentsChain.from_llm(reader, QA_PROMPT, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return RetrievalQA(combine_documents_chain=combine, retriever=retriever, return_source_documents=True)


@pytest.mark.parametrize("asynchronously", [False, True])
async def test_retrieval_qa_works(poisoned: ListRetriever, asynchronously: bool) -> None:
    recorder = Recorder()
    qa, config = retrieval_qa(poisoned, Reader()), {"callbacks": [recorder], "tags": ["mine"]}
    result = await qa.ainvoke({"query": QUESTION}, config) if asynchronously else qa.invoke({"query": QUESTION}, config)
    assert result["result"] == "Paris"
    assert result["source_documents"] == poisoned.documents
    assert len(recorder.roots()) == 1
    assert len(recorder.named("group:")) == 6
    assert all("mine" in run["tags"] for run in recorder.named("group:"))


@pytest.mark.parametrize("asynchronously", [False, True])
async def test_documents_in_text_and_report_out(poisoned: ListRetriever, asynchronously: bool) -> None:
    chain = RobustDocumentsChain.from_llm(Reader(), PROMPT, group_by="source")
    given = {"input_documents": poisoned.documents, "input": QUESTION}
    result = await chain.ainvoke(given) if asynchronously else chain.invoke(given)
    assert result["output_text"] == "Paris"
    assert result["robustness"].groups[1].status == "differs"
