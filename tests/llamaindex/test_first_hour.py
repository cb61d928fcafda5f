"""What people of LlamaIndex write first, and what they are told."""

from __future__ import annotations

import copy
import pickle

import pytest
from llama_index.core import PromptTemplate
from llama_index.core.base.response.schema import PydanticResponse
from llama_index.core.chat_engine import CondenseQuestionChatEngine
from llama_index.core.tools import QueryEngineTool

from llamaindex_robustrag import Abstained, RobustRAGQueryEngine, RobustRAGSynthesizer
from tests.llamaindex.fakes import Capital, FactReader, index_of

INDEX = index_of([f"Nothing is said here, {i} times." for i in range(4)])
LLM = FactReader()


def test_a_template_without_the_question_is_refused() -> None:
    with pytest.raises(ValueError, match=r"text_qa_template must show \{query_str\}"):
        RobustRAGSynthesizer(llm=LLM, text_qa_template=PromptTemplate("Read: {context_str}"))
    asking = PromptTemplate("Read: {context_str} {query_str}")
    RobustRAGSynthesizer(llm=LLM, text_qa_template=asking)
    RobustRAGSynthesizer(llm=LLM, text_qa_template=asking.partial_format(query_str="Who won?"))


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
