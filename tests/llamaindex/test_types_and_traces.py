"""What type checkers, traces and prompts of a shell see."""

from __future__ import annotations

from types import FunctionType
from typing import get_type_hints

from llama_index.core.instrumentation import get_dispatcher
from llama_index.core.instrumentation.span_handlers import SimpleSpanHandler

import llamaindex_robustrag
from llamaindex_robustrag import (
    DiverseRetriever,
    IsolationAudit,
    RobustContextChatEngine,
    RobustRAGQueryEngine,
    RobustRAGSynthesizer,
)
from tests.llamaindex.fakes import QUESTION, FactReader, index_of, nodes_of, truthful


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
