"""What people write first, and what type checkers, traces, copies and prompts of a shell see."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from types import FunctionType
from typing import Any, get_type_hints

import pytest
from llama_index.core.base.llms.types import CompletionResponse, LLMMetadata
from llama_index.core.base.response.schema import PydanticResponse
from llama_index.core.chat_engine import CondenseQuestionChatEngine
from llama_index.core.instrumentation import get_dispatcher
from llama_index.core.instrumentation.span_handlers import SimpleSpanHandler
from llama_index.core.llms import CustomLLM
from llama_index.core.prompts import PromptTemplate
from llama_index.core.tools import QueryEngineTool

import llamaindex_robustrag
from llamaindex_robustrag import (
    Abstained,
    CallOptions,
    DiverseRetriever,
    IsolationAudit,
    RobustContextChatEngine,
    RobustRAGQueryEngine,
    RobustRAGSynthesizer,
)
from tests.llamaindex.fakes import QUESTION, Capital, FactReader, index_of, nodes_of, truthful


def test_every_public_function_and_constructor_has_type_hints() -> None:
    for item in map(llamaindex_robustrag.__dict__.get, llamaindex_robustrag.__all__):
        if isinstance(item, FunctionType):
            assert "return" in get_type_hints(item)
        elif isinstance(item, type):
            get_type_hints(item)
            get_type_hints(item.__init__)


def test_printed_metadata_shows_a_line_of_the_report(llm: FactReader) -> None:
    response = RobustRAGSynthesizer(llm).synthesize(QUESTION, nodes_of(truthful()))
    line = "'robustrag': RobustAnswer('Paris', radius=2 of 6 passages, citations=6"
    assert line in str(response.metadata)
    assert repr(dict(response.metadata or {}))[:-1] in repr(response.metadata)
    streamed = RobustRAGSynthesizer(llm, streaming=True).synthesize(QUESTION, nodes_of(truthful()))
    assert "'robustrag': pending" in str(streamed.metadata)


def test_reprs_say_something_in_a_line(llm: FactReader) -> None:
    retriever = index_of(truthful()).as_retriever()
    synthesizer = RobustRAGSynthesizer(llm, streaming=True)
    shown = "RobustRAGSynthesizer(fact-reader, aggregation='consensus', group_by='origin', streaming=True)"
    assert repr(synthesizer) == shown
    engine = RobustRAGQueryEngine.from_args(retriever, response_synthesizer=synthesizer)
    assert repr(engine) == f"RobustRAGQueryEngine(VectorIndexRetriever, {shown})"
    chat = RobustContextChatEngine.from_defaults(retriever, response_synthesizer=synthesizer)
    assert repr(chat) == f"RobustContextChatEngine(VectorIndexRetriever, {shown})"
    assert repr(DiverseRetriever(retriever)) == "DiverseRetriever(VectorIndexRetriever, sources=10, per_origin=2)"
    assert repr(IsolationAudit()) == "IsolationAudit(on='log', findings=0)"


def test_no_span_of_ours_has_a_private_name(llm: FactReader) -> None:
    engine, spans = RobustRAGQueryEngine.from_args(index_of(truthful()).as_retriever(), llm=llm), SimpleSpanHandler()
    root = get_dispatcher()
    root.add_span_handler(spans)
    try:
        engine.query(QUESTION)
    finally:
        root.span_handlers.remove(spans)
    names = {span.id_.rsplit("-", 5)[0] for span in spans.completed_spans}
    assert "RobustRAGSynthesizer.synthesize" in names
    assert not any("_" in name.partition(".")[2] for name in names if name.startswith("RobustRAGSynthesizer"))


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


class Says(CustomLLM):
    """Says Paris, and can be pickled."""

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(model_name="says")

    def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        return CompletionResponse(text='{"name": "Paris"}' if "schema" in prompt else "Paris")

    def stream_complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> Any:
        yield CompletionResponse(text="Paris", delta="Paris")


def pickled(thing: Any) -> Any:
    return pickle.loads(pickle.dumps(thing))


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, pickled])
@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"streaming": True},
        {"output_cls": Capital},
        {
            "text_qa_template": PromptTemplate("{context_str} {query_str}"),
            "calls": CallOptions(num_workers=3, timeout=5.0),
        },
        {"final_llm": Says(), "output_cls": Capital},
    ],
    ids=["plain", "streaming", "structured", "own prompt", "two models"],
)
def test_a_synthesizer_answers_as_before(copied: Callable[[Any], Any], arguments: dict[str, Any]) -> None:
    first = RobustRAGSynthesizer(Says(), **arguments)
    nodes = nodes_of(truthful(3))
    before = first.synthesize(QUESTION, nodes)
    second = copied(first)
    assert second is not first
    after = second.synthesize(QUESTION, nodes)
    if arguments.get("streaming"):
        assert "".join(before.response_gen) == "".join(after.response_gen) == "Paris"
    assert str(after) == str(before)
    assert after.metadata["robustrag"]["settings"] == before.metadata["robustrag"]["settings"]


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, pickled])
def test_an_engine_answers_as_before(copied: Callable[[Any], Any]) -> None:
    engine = RobustRAGQueryEngine.from_args(index_of(truthful(3)).as_retriever(), llm=Says())
    assert str(copied(engine).query(QUESTION)) == "Paris"


def test_a_chat_engine_can_be_pickled_with_a_memory_that_can() -> None:
    engine = RobustContextChatEngine.from_defaults(index_of(truthful(3)).as_retriever(), llm=Says())
    assert str(pickled(engine).chat(QUESTION)) == "Paris"
