"""What people write first, and what type checkers, schemas, serialisers and prompts of a shell see."""

from __future__ import annotations

import inspect
from functools import partial
from typing import Any, get_args

import pytest
from langchain_core.documents import Document
from langchain_core.runnables import RunnablePassthrough

from langchain_robustrag import (
    RobustOptions,
    create_robust_documents_chain,
    create_robust_node,
    create_robust_retrieval_chain,
)
from langchain_robustrag.middleware import RobustRetrievalMiddleware
from robustrag_integrations.defenses.options import MethodName, MethodOptions
from robustrag_integrations.defenses.registry import METHODS
from robustrag_integrations.grouping.votes import RULES
from tests.langchain.fakes import PROMPT, QUESTION, ListRetriever, Reader, truthful

INPUT = {"input": QUESTION}


def test_options_are_typed_by_every_name_that_there_is_and_misspelt_ones_get_the_nearest() -> None:
    settings = {setting.name for method in METHODS.values() for setting in method.settings}
    assert MethodOptions.__annotations__.keys() == settings | {"task", *RULES} - {"group_by"}
    assert set(get_args(MethodName)) == METHODS.keys()
    shown = inspect.signature(create_robust_documents_chain).parameters
    assert RobustOptions.__annotations__.keys() == (
        (shown.keys() | MethodOptions.__annotations__.keys()) - {"llm", "prompt", "return_robustness"}
    )
    assert len(shown) <= 20
    makes: list[tuple[Any, str, str]] = [
        (create_robust_documents_chain, "return_robustnes", "return_robustness"),
        (create_robust_documents_chain, "min_suport", "min_support"),
        (partial(create_robust_retrieval_chain, RETRIEVER), "suporting_only", "supporting_only"),
        (create_robust_node, "anser_key", "answer_key"),
        (RobustRetrievalMiddleware, "pass_trough", "pass_through"),
        (create_robust_documents_chain, "max_concurrency", r"calls=CallOptions\(max_concurrency=...\)"),
    ]
    for make, wrong, meant in makes:
        for value in (True, None):
            with pytest.raises(TypeError, match=rf"{wrong}'?; .*{meant}"):
                make(LLM, **{wrong: value})
    with pytest.raises(ValueError, match="did you mean 'keyword'"):
        create_robust_documents_chain(LLM, method="kyword")  # type: ignore[arg-type]


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
