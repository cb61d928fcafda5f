"""A wiring check: where can retrieved text reach a model without isolation?

It reads how an engine, chat engine, agent or tool is put together; it calls nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from inspect import getclosurevars, unwrap
from types import FunctionType, MethodType
from typing import Any

from llama_index.core.agent.workflow import AgentWorkflow
from llama_index.core.agent.workflow.base_agent import BaseWorkflowAgent
from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.chat_engine import (
    CondensePlusContextChatEngine,
    CondenseQuestionChatEngine,
    ContextChatEngine,
    SimpleChatEngine,
)
from llama_index.core.chat_engine.types import BaseChatEngine
from llama_index.core.query_engine import (
    CitationQueryEngine,
    FLAREInstructQueryEngine,
    MultiStepQueryEngine,
    RetrieverQueryEngine,
    RetryGuidelineQueryEngine,
    RetryQueryEngine,
    RetrySourceQueryEngine,
    RouterQueryEngine,
    SubQuestionQueryEngine,
    ToolRetrieverRouterQueryEngine,
    TransformQueryEngine,
)
from llama_index.core.response_synthesizers import BaseSynthesizer
from llama_index.core.retrievers import QueryFusionRetriever, RecursiveRetriever, RouterRetriever
from llama_index.core.tools import BaseTool, FunctionTool, QueryEngineTool, QueryPlanTool, RetrieverTool
from llama_index.core.tools.eval_query_engine import EvalQueryEngineTool
from llama_index.core.workflow import Workflow

from llamaindex_robustrag.chat_engines import ReportingChatEngine
from llamaindex_robustrag.findings import Finding, UndefendedError
from llamaindex_robustrag.postprocessors import postprocessor_findings
from llamaindex_robustrag.synthesizer import RobustRAGSynthesizer

_ONE_CHOICE = frozenset({"LLMSingleSelector", "PydanticSingleSelector", "EmbeddingSingleSelector"})
_ENGINE = "RobustRAGQueryEngine.from_args(retriever, llm=llm)"


def find_undefended(engine: object, *, streaming: bool | None = None, trusted: Sequence[type] = ()) -> list[Finding]:
    """Every place where retrieved text can reach a model without isolation, with its fix.

    Args:
        engine: a query engine, chat engine, agent, workflow, tool, response synthesizer, retriever, or a list of them.
        streaming: whether you expect streamed responses. `as_query_engine(streaming=True, response_synthesizer=...)`
            drops the argument and leaves no trace; say here what you asked for, to have it compared.
        trusted: classes of your own that keep the documents apart and every node's source: postprocessors, retrievers,
            engines or tools.

    Returns:
        The findings, outermost first; none for an engine that is defended.

    Raises:
        TypeError: this is not a thing that answers questions.
    """
    if not isinstance(engine, (*_KNOWN, list, tuple)):
        raise TypeError(
            f"cannot check a {type(engine).__name__}; pass the query engine, chat engine, agent or tool that people use"
        )
    return list(_Walk(streaming, tuple(trusted)).visit(engine, ""))


def assert_defended(engine: object, *, streaming: bool | None = None, trusted: Sequence[type] = ()) -> None:
    """Raise unless retrieved text reaches models in isolation only.

    Args:
        engine: see `find_undefended`, as for the others.
        streaming: whether you expect streamed responses.
        trusted: classes of your own that keep the documents apart.

    Raises:
        UndefendedError: it does not; the message lists every place and its fix.
        TypeError: this is not a thing that answers questions.
    """
    if found := find_undefended(engine, streaming=streaming, trusted=trusted):
        raise UndefendedError(found)


@dataclass
class _Walk:
    """One walk over what an engine is made of; each object is visited once."""

    streaming: bool | None
    trusted: tuple[type, ...]
    seen: dict[int, object] = field(default_factory=dict)

    def visit(self, thing: object, path: str) -> Iterator[Finding]:
        if id(thing) in self.seen or isinstance(thing, self.trusted):
            return
        self.seen[id(thing)] = thing
        if isinstance(thing, Mapping):
            for key, value in thing.items():
                yield from self.visit(value, f"{path}[{key!r}]")
        elif isinstance(thing, (list, tuple)):
            for at, value in enumerate(thing):
                yield from self.visit(value, f"{path}[{at}]")
        else:
            for kinds, rule in _RULES:
                if isinstance(thing, kinds):
                    yield from rule(self, thing, path)
                    return

    def parts(self, thing: object, path: str, *names: str) -> Iterator[Finding]:
        """Visit these attributes, as far as there are any."""
        for name in names:
            if (part := getattr(thing, name, None)) is not None:
                yield from self.visit(part, f"{path}.{name}")

    def postprocessors(self, thing: object, path: str) -> Iterator[Finding]:
        listed = getattr(thing, "_node_postprocessors", None) or ()
        return postprocessor_findings(listed, f"{path}._node_postprocessors", self.trusted)


def _synthesizer(walk: _Walk, thing: BaseSynthesizer, path: str) -> Iterator[Finding]:
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


def _retriever_engine(walk: _Walk, thing: RetrieverQueryEngine, path: str) -> Iterator[Finding]:
    yield from walk.postprocessors(thing, path)
    yield from walk.parts(thing, path, "_retriever", "_response_synthesizer")


def _citation_engine(walk: _Walk, thing: CitationQueryEngine, path: str) -> Iterator[Finding]:
    synthesizer = getattr(thing, "_response_synthesizer", None)
    if isinstance(synthesizer, RobustRAGSynthesizer) and synthesizer.group_by == "node":
        yield Finding(
            "split-nodes",
            path,
            type(thing).__name__,
            "it splits each node into several, and group_by='node' gives each of them a vote",
            "pass group_by='source' to the RobustRAGSynthesizer",
        )
    yield from _retriever_engine(walk, thing, path)  # type: ignore[arg-type]


def _context_chat(walk: _Walk, thing: BaseChatEngine, path: str) -> Iterator[Finding]:
    yield Finding(
        "context-chat",
        path,
        type(thing).__name__,
        "it puts everything that was retrieved into one system prompt; a response_synthesizer given to "
        "as_chat_engine is never called in this mode",
        f"use Robust{'CondensePlus' if 'CondensePlus' in type(thing).__name__ else ''}ContextChatEngine"
        ".from_defaults(retriever, llm=llm), or chat_mode='condense_question'",
    )


def _robust_chat(walk: _Walk, thing: ReportingChatEngine, path: str) -> Iterator[Finding]:
    yield from walk.postprocessors(thing, path)
    yield from walk.parts(thing, path, "_retriever")


def _question_chat(walk: _Walk, thing: CondenseQuestionChatEngine, path: str) -> Iterator[Finding]:
    # It switches streaming on and off itself, whatever was asked for.
    inner = _Walk(None, walk.trusted, walk.seen)
    yield from inner.parts(thing, path, "_query_engine")


def _router(walk: _Walk, thing: Any, path: str) -> Iterator[Finding]:
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


def _composed(walk: _Walk, thing: Any, path: str) -> Iterator[Finding]:
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


def _judged(walk: _Walk, thing: Any, path: str) -> Iterator[Finding]:
    yield Finding(
        "joint-evaluator",
        path,
        type(thing).__name__,
        "its evaluator reads the texts of all sources in one prompt, so one document can have a good answer rejected",
        "use the inner engine by itself, and its robustrag report (radius, abstained) to decide whether to ask again",
    )
    yield from walk.parts(thing, path, "_query_engine")


def _inner_engine(walk: _Walk, thing: Any, path: str) -> Iterator[Finding]:
    yield from walk.parts(thing, path, "_query_engine")


def _retriever_tool(walk: _Walk, thing: RetrieverTool, path: str) -> Iterator[Finding]:
    yield Finding(
        "retriever-tool",
        path,
        type(thing).__name__,
        "the agent's model reads the retrieved texts as they are; nothing is aggregated",
        f"use QueryEngineTool.from_defaults({_ENGINE})",
    )


def _function_tool(walk: _Walk, thing: FunctionTool, path: str) -> Iterator[Finding]:
    """Look at what the function holds: its instance, closure and the globals it names."""
    for name, value in _held_by(getattr(thing, "_real_fn", None) or thing._fn):
        if isinstance(value, walk.trusted or ()):
            continue
        if isinstance(value, BaseRetriever) or hasattr(type(value), "as_retriever"):
            yield Finding(
                "retrieving-function",
                f"{path}:{name}",
                type(value).__name__,
                "a function given to the agent holds a retriever; what it returns is read by the agent's model",
                f"use QueryEngineTool.from_defaults({_ENGINE}) in its place",
            )
        else:
            yield from walk.visit(value, f"{path}:{name}")


def _held_by(function: Any) -> Iterator[tuple[str, object]]:
    while hasattr(function, "func"):  # functools.partial
        yield from ((f"args[{i}]", a) for i, a in enumerate(getattr(function, "args", ())))
        yield from getattr(function, "keywords", {}).items()
        function = function.func
    if isinstance(function, MethodType):
        yield "self", function.__self__
        if not isinstance(function.__self__, _KNOWN):
            yield from getattr(function.__self__, "__dict__", {}).items()
        function = function.__func__
    function = unwrap(function) if callable(function) else function
    if isinstance(function, FunctionType):
        try:
            held = getclosurevars(function)
        except (TypeError, ValueError):
            return
        yield from held.nonlocals.items()
        yield from ((name, value) for name, value in held.globals.items() if _holds(value))


def _holds(value: object) -> bool:
    return isinstance(value, _HOLDERS) or hasattr(type(value), "as_retriever")


def _agent(walk: _Walk, thing: Any, path: str) -> Iterator[Finding]:
    if getattr(thing, "tool_retriever", None) is not None:
        yield Finding(
            "tool-retriever",
            f"{path}.tool_retriever",
            type(thing.tool_retriever).__name__,
            "the agent's tools are only known when it runs, so they cannot be checked here",
            "check the list of tools before indexing it, with assert_defended(tools), and list the class in trusted=",
        )
    for at, tool in enumerate(getattr(thing, "tools", None) or ()):
        if isinstance(tool, BaseTool):
            yield from walk.visit(tool, f"{path}.tools[{at}]")
        elif callable(tool):
            yield from walk.visit(FunctionTool.from_defaults(tool), f"{path}.tools[{at}]")
    yield from walk.parts(thing, path, "agents")


def _retriever(walk: _Walk, thing: BaseRetriever, path: str) -> Iterator[Finding]:
    """Some retrievers ask engines, whose answers become nodes."""
    if isinstance(thing, RecursiveRetriever):
        yield from walk.parts(thing, path, "_query_engine_dict", "_retrievers_dict")
    elif isinstance(thing, (QueryFusionRetriever, RouterRetriever)):
        yield from walk.parts(thing, path, "_retrievers")


def _workflow(walk: _Walk, thing: Workflow, path: str) -> Iterator[Finding]:
    for name, value in vars(thing).items():
        if isinstance(value, BaseRetriever):
            yield _unknown_finding(thing, f"{path}.{name}", "a workflow with a retriever of its own")
        elif isinstance(value, (*_KNOWN, list, tuple, dict)):
            yield from walk.visit(value, f"{path}.{name}")


def _unknown(walk: _Walk, thing: object, path: str) -> Iterator[Finding]:
    yield _unknown_finding(thing, path, "what it does with retrieved text is not known")


def _unknown_finding(thing: object, path: str, problem: str) -> Finding:
    return Finding(
        "unknown",
        path,
        type(thing).__name__,
        problem,
        f"answer with {_ENGINE}, or, if it isolates documents itself, pass trusted=[{type(thing).__name__}]",
    )


def _nothing(walk: _Walk, thing: object, path: str) -> Iterator[Finding]:
    return iter(())


# The first kind that fits decides.
_RULES: tuple[tuple[type | tuple[type, ...], Callable[[_Walk, Any, str], Iterator[Finding]]], ...] = (
    (BaseSynthesizer, _synthesizer),
    (CitationQueryEngine, _citation_engine),
    (RetrieverQueryEngine, _retriever_engine),
    (ReportingChatEngine, _robust_chat),
    ((ContextChatEngine, CondensePlusContextChatEngine), _context_chat),
    (CondenseQuestionChatEngine, _question_chat),
    (SimpleChatEngine, _nothing),
    ((RouterQueryEngine, ToolRetrieverRouterQueryEngine), _router),
    ((SubQuestionQueryEngine, MultiStepQueryEngine, QueryPlanTool), _composed),
    ((RetryQueryEngine, RetryGuidelineQueryEngine, RetrySourceQueryEngine, EvalQueryEngineTool), _judged),
    ((TransformQueryEngine, FLAREInstructQueryEngine, QueryEngineTool), _inner_engine),
    (RetrieverTool, _retriever_tool),
    (FunctionTool, _function_tool),
    ((BaseWorkflowAgent, AgentWorkflow), _agent),
    (BaseRetriever, _retriever),
    (Workflow, _workflow),
    ((BaseQueryEngine, BaseChatEngine, BaseTool), _unknown),
)
_KNOWN = (
    BaseSynthesizer,
    BaseQueryEngine,
    BaseChatEngine,
    BaseTool,
    BaseRetriever,
    BaseWorkflowAgent,
    AgentWorkflow,
    Workflow,
)
_HOLDERS = (BaseSynthesizer, BaseQueryEngine, BaseChatEngine, BaseTool, BaseRetriever)
