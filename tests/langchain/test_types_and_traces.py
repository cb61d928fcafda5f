"""What people write first, and what type checkers, schemas, serialisers and prompts of a shell see."""

from __future__ import annotations

import json
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.load import dumps, loads
from langchain_core.runnables import RunnablePassthrough

from langchain_robustrag import (
    create_robust_documents_chain,
    create_robust_retrieval_chain,
)
from robustrag_integrations import RobustAnswer
from tests.langchain.fakes import PROMPT, QUESTION, ListRetriever, Reader, truthful

INPUT = {"input": QUESTION}


def test_a_result_that_is_stored_is_refused_with_what_to_store(poisoned: ListRetriever) -> None:
    result = create_robust_retrieval_chain(poisoned, Reader(), PROMPT).invoke(INPUT)
    with pytest.raises(NotImplementedError, match=r"to_dict\(\) has all of it"):
        loads(dumps(result))
    stored = json.dumps(result["robustness"].to_dict())
    assert RobustAnswer.from_dict(json.loads(stored)) == result["robustness"]


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
