"""What people of LlamaIndex write first, and what they are told."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest
from llama_index.core import PromptTemplate
from llama_index.core.base.response.schema import PydanticResponse
from llama_index.core.chat_engine import CondenseQuestionChatEngine
from llama_index.core.tools import QueryEngineTool

from llamaindex_robustrag import Abstained, RobustContextChatEngine, RobustRAGQueryEngine, RobustRAGSynthesizer
from tests.llamaindex.fakes import Capital, FactReader, index_of, nodes_of

INDEX = index_of([f"Nothing is said here, {i} times." for i in range(4)])
LLM = FactReader()


@pytest.mark.parametrize(
    ("name", "fix"),
    [
        ("return_source_documents", "source_nodes"),
        ("k", "similarity_top_k=10"),
        ("verbose", "explain"),
        ("context_prompt", "text_qa_template"),
    ],
)
def test_arguments_of_other_engines_name_what_to_use(name: str, fix: str) -> None:
    for make in (RobustRAGQueryEngine.from_args, RobustContextChatEngine.from_defaults):
        with pytest.raises(TypeError, match=fix):
            make(INDEX.as_retriever(), llm=LLM, **{name: "x"})


def test_a_template_without_the_question_is_refused() -> None:
    with pytest.raises(ValueError, match=r"text_qa_template must show \{query_str\}"):
        RobustRAGSynthesizer(llm=LLM, text_qa_template=PromptTemplate("Read: {context_str}"))
    asking = PromptTemplate("Read: {context_str} {query_str}")
    RobustRAGSynthesizer(llm=LLM, text_qa_template=asking)
    RobustRAGSynthesizer(llm=LLM, text_qa_template=asking.partial_format(query_str="Who won?"))


def test_metadata_that_takes_the_room_of_the_text_is_named() -> None:
    nodes: list[Any] = nodes_of([f"text {i}" for i in range(3)])
    nodes[1].node.metadata["summary"] = "x" * 3_000
    response = RobustRAGSynthesizer(llm=LLM).synthesize("q", nodes=nodes)
    warnings = [w for w in response.metadata["robustrag"]["warnings"] if "metadata of node 'node-1'" in w]  # type: ignore[index]
    assert len(warnings) == 1
    assert "excluded_llm_metadata_keys" in warnings[0]
    nodes[1].node.excluded_llm_metadata_keys = ["summary"]
    response = RobustRAGSynthesizer(llm=LLM).synthesize("q", nodes=nodes)
    assert "metadata of node" not in str(response.metadata["robustrag"]["warnings"])  # type: ignore[index]


def test_a_structured_abstention_is_never_the_text_none() -> None:
    engine = RobustRAGQueryEngine.from_args(INDEX.as_retriever(similarity_top_k=4), llm=LLM, output_cls=Capital)
    response = engine.query("q?")
    assert isinstance(response, PydanticResponse)
    assert isinstance(response.response, Abstained)
    for one in (response, copy.deepcopy(response), pickle.loads(pickle.dumps(response))):
        assert str(one) == str(one.response) == "I don't know"
    made = QueryEngineTool.from_defaults(engine, name="t", description="d")
    assert made("q?").content == "I don't know"
    chat = CondenseQuestionChatEngine.from_defaults(query_engine=engine, llm=LLM)
    assert str(chat.chat("q?")) == chat.chat_history[-1].content == "I don't know"
