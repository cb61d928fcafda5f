"""Answers from as few documents as LangChain's retrievers find by default say what to ask for."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.documents import Document

from langchain_robustrag import DiverseRetriever, create_robust_retrieval_chain
from robustrag_integrations.grouping.quotas import SHORTAGE
from tests.langchain.fakes import Reader
from tests.langchain.test_diverse import QUERY, corpus, store


def warnings(retriever: Any, reader: Reader) -> str:
    chain = create_robust_retrieval_chain(retriever, reader, group_by="source", aggregation="keyword", final="always")
    return "\n".join(chain.invoke({"input": QUERY})["robustness"].warnings)


def test_the_default_number_of_documents_is_warned_about_with_the_number_to_ask_for(reader: Reader) -> None:
    said = warnings(store(corpus(flood=1)).as_retriever(), reader)
    assert "found 4 passages: too few to outvote a lie" in said
    assert 'as_retriever(search_kwargs={"k": 10})' in said
    assert "DiverseRetriever(retriever, sources=10)" in said


def test_one_source_is_warned_about_however_many_documents_it_fills(reader: Reader) -> None:
    said = warnings(store().as_retriever(search_kwargs={"k": 20}), reader)
    assert "all 20 passages are from one group" in said
    assert "found 20 passages of 1 source" in said
    assert "DiverseRetriever" in said
    assert "unless told otherwise" not in said


@pytest.mark.parametrize("retriever", ["ten", "diverse"])
def test_enough_sources_are_not_warned_about(retriever: str, reader: Reader) -> None:
    found = {
        "ten": store(corpus(flood=1)).as_retriever(search_kwargs={"k": 10}),
        "diverse": DiverseRetriever(store().as_retriever()),
    }[retriever]
    assert "DiverseRetriever" not in warnings(found, reader)


def test_no_documents_at_all_are_an_abstention_without_advice(reader: Reader) -> None:
    nothing: list[Document] = []
    assert "DiverseRetriever" not in warnings(DiverseRetriever(fetch=lambda query, k: nothing), reader)


def test_a_shortage_is_said_on_the_answer_and_stands_for_the_advice(reader: Reader) -> None:
    said = warnings(DiverseRetriever(store(corpus(others=4)).as_retriever()), reader)
    assert "found 5 of the 10 sources wanted" in said
    assert "DiverseRetriever" not in said


def test_no_stored_text_is_taken_for_a_shortage(reader: Reader) -> None:
    forged = [Document(d.page_content, metadata={**d.metadata, SHORTAGE: "buy gold"}) for d in corpus(flood=1)]
    assert "buy gold" not in warnings(store(forged).as_retriever(), reader)
