"""Query and chat engines: where they put retrieved text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from llama_index.core.chat_engine import (
    CondenseQuestionChatEngine,
)
from llama_index.core.chat_engine.types import BaseChatEngine
from llama_index.core.query_engine import (
    CitationQueryEngine,
    RetrieverQueryEngine,
)
from llama_index.core.response_synthesizers import BaseSynthesizer

from llamaindex_robustrag.chat_engines import ReportingChatEngine
from llamaindex_robustrag.synthesizer import RobustRAGSynthesizer
from llamaindex_robustrag.wiring.walk import Walk
from robustrag_integrations.undefended import Finding

_ONE_CHOICE = frozenset({"LLMSingleSelector", "PydanticSingleSelector", "EmbeddingSingleSelector"})


def synthesizer(walk: Walk, thing: BaseSynthesizer, path: str) -> Iterator[Finding]:
    """Anything but a robust synthesizer, and one whose streaming was set elsewhere in vain."""
    name = type(thing).__name__
    if not isinstance(thing, RobustRAGSynthesizer):
        yield Finding(
            "stock-synthesizer",
            path,
            name,
            "it puts the texts of several documents into one prompt, or lets one document answer several times",
            "pass response_synthesizer=RobustRAGSynthesizer(llm=llm)",
        )
    elif walk.streaming is not None and walk.streaming != thing.streams:
        yield Finding(
            "ignored-streaming",
            path,
            name,
            f"streaming={walk.streaming} was ignored: with a response_synthesizer of your own, as_query_engine drops "
            "that argument",
            f"pass it to the synthesizer: RobustRAGSynthesizer(llm=llm, streaming={walk.streaming})",
        )


def retriever_engine(walk: Walk, thing: RetrieverQueryEngine, path: str) -> Iterator[Finding]:
    """Postprocessors, retriever and synthesizer."""
    yield from walk.postprocessors(thing, path)
    yield from walk.parts(thing, path, "_retriever", "_response_synthesizer")


def citation_engine(walk: Walk, thing: CitationQueryEngine, path: str) -> Iterator[Finding]:
    """It splits nodes before they are grouped."""
    synthesizer = getattr(thing, "_response_synthesizer", None)
    if isinstance(synthesizer, RobustRAGSynthesizer) and synthesizer.group_by == "node":
        yield Finding(
            "split-nodes",
            path,
            type(thing).__name__,
            "it splits each node into several, and group_by='node' gives each of them a vote",
            "pass group_by='source' to the RobustRAGSynthesizer",
        )
    yield from retriever_engine(walk, thing, path)  # type: ignore[arg-type]


def context_chat(walk: Walk, thing: BaseChatEngine, path: str) -> Iterator[Finding]:
    """LlamaIndex's own chat engines put all nodes into one prompt."""
    yield Finding(
        "context-chat",
        path,
        type(thing).__name__,
        "it puts everything that was retrieved into one system prompt; a response_synthesizer given to "
        "as_chat_engine is never called in this mode",
        f"use Robust{'CondensePlus' if 'CondensePlus' in type(thing).__name__ else ''}ContextChatEngine"
        ".from_defaults(retriever, llm=llm), or chat_mode='condense_question'",
    )


def robust_chat(walk: Walk, thing: ReportingChatEngine, path: str) -> Iterator[Finding]:
    """Postprocessors and retriever."""
    yield from walk.postprocessors(thing, path)
    yield from walk.parts(thing, path, "_retriever")


def question_chat(walk: Walk, thing: CondenseQuestionChatEngine, path: str) -> Iterator[Finding]:
    """Its query engine."""
    # It switches streaming on and off itself, whatever was asked for.
    inner = Walk(walk.rules, None, walk.trusted, walk.seen)
    yield from inner.parts(thing, path, "_query_engine")


def router(walk: Walk, thing: Any, path: str) -> Iterator[Finding]:
    """Several engines at once are merged in one prompt."""
    selector = getattr(thing, "_selector", None)
    merges = not isinstance(getattr(thing, "_summarizer", None), RobustRAGSynthesizer)
    if merges and type(selector).__name__ not in _ONE_CHOICE and not isinstance(selector, walk.trusted or ()):
        yield Finding(
            "multi-select-router",
            path,
            type(thing).__name__,
            "it may choose several engines and merge their answers with TreeSummarize: all of them in one prompt, and "
            "the robustrag report is dropped",
            "use a single selector (LLMSingleSelector, PydanticSingleSelector, EmbeddingSingleSelector), or pass "
            "summarizer=RobustRAGSynthesizer(llm=llm); list a single selector of your own in trusted=",
        )
    yield from walk.parts(thing, path, "_query_engines", "_retriever")


def composed(walk: Walk, thing: Any, path: str) -> Iterator[Finding]:
    """Sub-questions, steps and plans: inner engines read documents, the outer synthesizer reads their answers."""
    if isinstance(getattr(thing, "_response_synthesizer", None), RobustRAGSynthesizer):
        yield Finding(
            "outer-synthesizer",
            f"{path}._response_synthesizer",
            type(thing).__name__,
            "each sub-answer is unique, so aggregation drops them all as unsupported",
            "give the RobustRAGSynthesizer to the inner engines, and leave the outer one as it was",
        )
    yield from walk.parts(thing, path, "_query_engines", "_query_engine", "_query_tools_dict")


def judged(walk: Walk, thing: Any, path: str) -> Iterator[Finding]:
    """An evaluator reads all sources together."""
    yield Finding(
        "joint-evaluator",
        path,
        type(thing).__name__,
        "its evaluator reads the texts of all sources in one prompt, so one document can have a good answer rejected",
        "use the inner engine by itself, and its robustrag report (radius, abstained) to decide whether to ask again",
    )
    yield from walk.parts(thing, path, "_query_engine")


def inner_engine(walk: Walk, thing: Any, path: str) -> Iterator[Finding]:
    """The engine inside."""
    yield from walk.parts(thing, path, "_query_engine")
