"""What people of LangChain write first, and what they are told."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.runnables import RunnablePassthrough

from langchain_robustrag import Abstained, create_robust_documents_chain, create_robust_retrieval_chain
from tests.langchain.fakes import PROMPT, ListRetriever, Reader, truthful

RETRIEVER = ListRetriever(documents=truthful())
LLM = Reader()


def joined(documents: list[Document]) -> str:
    return "\n".join(d.page_content for d in documents)


def test_documents_that_were_formatted_are_refused_with_what_to_drop() -> None:
    chain = {"context": RETRIEVER | joined, "input": RunnablePassthrough()} | create_robust_documents_chain(LLM, PROMPT)
    with pytest.raises(TypeError, match=r"drop format_docs: \{\"context\": retriever"):
        chain.invoke("q")


def test_a_chain_where_the_model_belongs_is_refused_at_once() -> None:
    chains: list[Any] = [create_robust_documents_chain(LLM, PROMPT), create_robust_retrieval_chain(RETRIEVER, LLM)]
    chains += [chains[0].with_config(tags=["t"]), {"context": RETRIEVER} | PROMPT | LLM]
    classic = pytest.importorskip("langchain_classic.chains.combine_documents")
    chains.append(classic.create_stuff_documents_chain(LLM, PROMPT))
    for chain in chains:
        with pytest.raises(TypeError, match=r"llm must be the language model, got a chain over documents"):
            create_robust_retrieval_chain(RETRIEVER, chain)
        with pytest.raises(TypeError, match=r"create_robust_retrieval_chain\(retriever, llm, prompt\)"):
            create_robust_documents_chain(chain)
    create_robust_retrieval_chain(RETRIEVER, LLM.with_retry().with_config(tags=["t"]) | (lambda reply: reply.content))


def test_an_abstention_in_place_of_an_object_has_words() -> None:
    assert str(Abstained(text="I don't know")) == "{}".format(Abstained(text="I don't know")) == "I don't know"
