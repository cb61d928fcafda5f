"""Query and chat engines: where they put retrieved text."""

from __future__ import annotations

from dataclasses import replace
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
from llama_index.core.selectors import EmbeddingSingleSelector, LLMSingleSelector, PydanticSingleSelector

from llamaindex_robustrag.chat_engines import ReportingChatEngine
from llamaindex_robustrag.synthesizer import RobustRAGSynthesizer
from llamaindex_robustrag.wiring.agents import tools_unknown
from llamaindex_robustrag.wiring.identity import is_trusted, same_or_unchanged
from llamaindex_robustrag.wiring.walk import Place, Steps, Walk
from robustrag_integrations.audit import Finding

_ONE_CHOICE: tuple[type, ...] = (LLMSingleSelector, PydanticSingleSelector, EmbeddingSingleSelector)


def stock_synthesizer(walk: Walk, thing: BaseSynthesizer, place: Place) -> Steps:
    """Anything but a robust synthesizer."""
    yield Finding(
        "stock-synthesizer",
        place.path,
        type(thing).__name__,
        "it puts the texts of several documents into one prompt, or lets one document answer several times",
        "pass response_synthesizer=RobustRAGSynthesizer(llm=llm)",
    )


def robust_synthesizer(walk: Walk, thing: RobustRAGSynthesizer, place: Place) -> Steps:
    """What was asked of the engine, and never reached the synthesizer."""
    asked = walk.asked if place.compares else {}
    has = {"streaming": thing.streams, "output_cls": thing.output_cls, "text_qa_template": thing.text_qa_template}
    for name, value in asked.items():
        if value is not None and (name not in has or has[name] != value):
            shown = value if isinstance(value, (bool, str)) else getattr(value, "__name__", name)
            fix = f"pass it to the synthesizer: RobustRAGSynthesizer(llm=llm, {name}={shown})"
            if name not in has:
                fix = f"leave {name} out: documents are asked one by one; aggregation= says how answers are combined"
            yield Finding(
                f"ignored-{name.replace('_', '-')}",
                place.path,
                type(thing).__name__,
                f"{name}={shown} was ignored: with a response_synthesizer of your own, as_query_engine drops that "
                "argument",
                fix,
            )


def retriever_engine(walk: Walk, thing: RetrieverQueryEngine, place: Place) -> Steps:
    """Postprocessors, retriever and synthesizer."""
    yield from walk.postprocessors(thing, place)
    yield from walk.parts(thing, place, "_retriever", "_response_synthesizer")


def citation_engine(walk: Walk, thing: CitationQueryEngine, place: Place) -> Steps:
    """It splits nodes before they are grouped."""
    synthesizer = getattr(thing, "_response_synthesizer", None)
    if isinstance(synthesizer, RobustRAGSynthesizer) and synthesizer.group_by == "passage":
        yield Finding(
            "split-nodes",
            place.path,
            type(thing).__name__,
            "it splits each node into several, and group_by='passage' gives each of them a vote",
            "leave group_by out of the RobustRAGSynthesizer",
        )
    yield from retriever_engine(walk, thing, place)  # type: ignore[arg-type]


def context_chat(walk: Walk, thing: BaseChatEngine, place: Place) -> Steps:
    """LlamaIndex's own chat engines put all nodes into one prompt."""
    yield Finding(
        "context-chat",
        place.path,
        type(thing).__name__,
        "it puts everything that was retrieved into one system prompt; a response_synthesizer given to "
        "as_chat_engine is never called in this mode",
        f"use Robust{'CondensePlus' if 'CondensePlus' in type(thing).__name__ else ''}ContextChatEngine"
        ".from_defaults(retriever, llm=llm), or chat_mode='condense_question'",
    )


def robust_chat(walk: Walk, thing: ReportingChatEngine, place: Place) -> Steps:
    """Postprocessors and retriever."""
    yield from walk.postprocessors(thing, place)
    yield from walk.parts(thing, place, "_retriever")


def question_chat(walk: Walk, thing: CondenseQuestionChatEngine, place: Place) -> Steps:
    """Its query engine."""
    # It switches streaming on and off itself, whatever was asked for.
    yield from walk.parts(thing, replace(place, compares=False), "_query_engine")


def router(walk: Walk, thing: Any, place: Place) -> Steps:
    """Several engines at once are merged in one prompt."""
    selector = getattr(thing, "_selector", None)
    single = any(same_or_unchanged(selector, kind) for kind in _ONE_CHOICE) or is_trusted(selector, walk.trusted)
    tools = getattr(thing, "_retriever", None)
    several = tools is not None or len(getattr(thing, "_query_engines", ())) > 1
    summarizer = getattr(thing, "_summarizer", None)
    if several and not single and not same_or_unchanged(summarizer, RobustRAGSynthesizer):
        yield Finding(
            "multi-select-router",
            place.path,
            type(thing).__name__,
            "it may choose several engines and merge their answers with TreeSummarize: all of them in one prompt, and "
            "the robustrag report is dropped",
            "use a single selector (LLMSingleSelector, PydanticSingleSelector, EmbeddingSingleSelector), or pass "
            "summarizer=RobustRAGSynthesizer(llm=llm); robust_answers(response) then gives its report and those of the "
            "engines; list a single selector of your own in trusted=",
        )
    if tools is not None and not is_trusted(tools, walk.trusted):
        yield tools_unknown(tools, f"{place.path}._retriever")
    yield from walk.parts(thing, place, "_query_engines")


def composed(walk: Walk, thing: Any, place: Place) -> Steps:
    """Sub-questions, steps and plans: inner engines read documents, the outer synthesizer reads their answers."""
    if isinstance(getattr(thing, "_response_synthesizer", None), RobustRAGSynthesizer):
        yield Finding(
            "outer-synthesizer",
            f"{place.path}._response_synthesizer",
            type(thing).__name__,
            "each sub-answer is unique, so aggregation drops them all as unsupported",
            "give the RobustRAGSynthesizer to the inner engines, and leave the outer one as it was",
        )
    yield from walk.parts(thing, place, "_query_engines", "_query_engine", "_query_tools_dict")


def judged(walk: Walk, thing: Any, place: Place) -> Steps:
    """An evaluator reads all sources together."""
    yield Finding(
        "joint-evaluator",
        place.path,
        type(thing).__name__,
        "its evaluator reads the texts of all sources in one prompt, so one document can have a good answer rejected",
        "use the inner engine by itself, and its robustrag report (radius, abstained) to decide whether to ask again",
    )
    yield from walk.parts(thing, place, "_query_engine")


def inner_engine(walk: Walk, thing: Any, place: Place) -> Steps:
    """The engine inside."""
    yield from walk.parts(thing, place, "_query_engine")
