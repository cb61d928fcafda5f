"""What people write first, and what type checkers, schemas, serialisers and prompts of a shell see."""

from __future__ import annotations

import inspect
from functools import partial
from typing import Any, get_args

import pytest
from langchain_core.documents import Document
from langchain_core.output_parsers import CommaSeparatedListOutputParser
from langchain_core.runnables import RunnablePassthrough
from pydantic import BaseModel

from langchain_robustrag import (
    RobustOptions,
    RobustResult,
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
        (partial(create_robust_retrieval_chain, RETRIEVER), "trusted_retriver", "trusted_retriever"),
        (create_robust_node, "anser_key", "answer_key"),
        (RobustRetrievalMiddleware, "pass_trough", "pass_through"),
        (create_robust_documents_chain, "max_concurrency", r"calls=CallOptions\(max_concurrency=...\)"),
        (create_robust_documents_chain, "callbacks", "config"),
        (partial(create_robust_retrieval_chain, RETRIEVER), "max_tokens", r"LocalModel\(max_new_tokens=...\)"),
        (create_robust_documents_chain, "temperature", "it belongs to the model"),
        (create_robust_documents_chain, "frobnicate", "min_support.*output_parser"),
    ]
    for make, wrong, meant in makes:
        for value in (True, None):
            with pytest.raises(TypeError, match=rf"{wrong}'?; .*{meant}"):
                make(LLM, **{wrong: value})
    with pytest.raises(ValueError, match="did you mean 'keyword'"):
        create_robust_documents_chain(LLM, method="kyword")  # type: ignore[arg-type]


def test_a_setting_of_another_method_never_chooses_the_method() -> None:
    assert create_robust_documents_chain(LLM).method == "consensus"
    assert create_robust_documents_chain(LLM, choices=["Paris", "Rome"]).method == "voting"
    for method in METHODS.values():
        foreign = {s.name for s in method.settings} - {s.name for s in METHODS["consensus"].settings}
        for name in foreign - {"max_new_tokens"}:
            with pytest.raises(ValueError, match=f"{name} is for .*method='{method.name}'"):
                create_robust_retrieval_chain(RETRIEVER, LLM, **{name: 1})  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"LocalModel\(max_new_tokens=...\)"):
        create_robust_retrieval_chain(RETRIEVER, LLM, max_new_tokens=9)


class City(BaseModel):
    name: str


@pytest.mark.parametrize(
    ("options", "answer", "prompts"),
    [
        ({}, {"type": "string"}, 2),
        ({"method": "keyword"}, {"type": "string"}, 3),
        ({"output_parser": CommaSeparatedListOutputParser()}, {"type": "array"}, 2),
        ({"output_schema": City}, {"anyOf"}, 3),
    ],
    ids=["consensus", "keyword", "parser", "schema"],
)
def test_chains_say_of_what_they_are_and_what_they_give_as_stock_chains_do(
    options: Any, answer: Any, prompts: int
) -> None:
    chains: list[Any] = [create_robust_documents_chain(LLM, PROMPT, return_robustness=True, **options)]
    chains += [create_robust_retrieval_chain(RETRIEVER, LLM, PROMPT, trusted_retriever=MORE, **options)]
    for chain in chains:
        given = chain.get_output_jsonschema()["properties"]
        assert given["robustness"] == {"$ref": "#/$defs/RobustAnswer"}
        assert (
            answer <= given["answer"].keys() if isinstance(answer, set) else answer.items() <= given["answer"].items()
        )
        assert PROMPT in chain.get_prompts()
        assert len(chain.get_prompts()) == prompts
        assert {"Reader", "ChatPromptTemplate"} <= {node.name for node in chain.get_graph().nodes.values()}
        assert len(chain.get_graph().draw_mermaid()) > 300
        assert str(chain) == repr(chain)
        assert len(repr(chain)) < 250
        assert "Paris" not in repr(chain)
    assert chains[1].OutputType is RobustResult
    assert given.keys() == {"input", "context", "answer", "robustness", "standalone_question"}
    assert {"ListRetriever"} <= {node.name for node in chains[1].get_graph().nodes.values()}
    alone = create_robust_documents_chain(LLM, PROMPT, **options)
    if "output_schema" not in options:
        assert alone.OutputType in (str, list[str])
        assert answer.items() <= alone.get_output_jsonschema().items()


RETRIEVER, MORE = ListRetriever(documents=truthful()), ListRetriever(documents=truthful())
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
