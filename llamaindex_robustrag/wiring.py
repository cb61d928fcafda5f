"""A static wiring check: finds where known parts of a program show retrieved text to a model without isolation.

A rule says of each known class what is wrong with it, and which of its parts to visit. Functions and steps of workflows
are judged by what they hold; what they do is not looked into.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection
from dataclasses import dataclass
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
from llama_index.core.selectors import EmbeddingSingleSelector, LLMSingleSelector, PydanticSingleSelector
from llama_index.core.tools import BaseTool, FunctionTool, QueryEngineTool, QueryPlanTool, RetrieverTool
from llama_index.core.tools.eval_query_engine import EvalQueryEngineTool
from llama_index.core.tools.ondemand_loader_tool import OnDemandLoaderTool
from llama_index.core.tools.tool_spec.load_and_search.base import LoadAndSearchToolSpec
from llama_index.core.workflow import Workflow

from llamaindex_robustrag.chat_engines import (
    ReportingChatEngine,
    RobustCondensePlusContextChatEngine,
    RobustContextChatEngine,
)
from llamaindex_robustrag.query_engine import RobustRAGQueryEngine
from llamaindex_robustrag.synthesizer import RobustRAGSynthesizer
from robustrag_integrations.audit.wiring import Findings, held_by, is_library, parts_of, trusting

_ENGINE = "RobustRAGQueryEngine.from_args(retriever, llm=llm)"
_OURS = (
    RobustRAGSynthesizer,
    RobustRAGQueryEngine,
    RobustContextChatEngine,
    RobustCondensePlusContextChatEngine,
    ReportingChatEngine,
)
_ONE_CHOICE = (LLMSingleSelector, PydanticSingleSelector, EmbeddingSingleSelector)
_JOINT_RERANKERS = ("LLMRerank", "RankGPTRerank", "StructuredLLMRerank", "RankLLMRerank")
_MERGING = ("LongLLMLinguaPostprocessor",)
_JOINT_RETRIEVERS = (
    "BasePGRetriever",
    "DocumentSummaryIndexLLMRetriever",
    "KGTableRetriever",
    "KnowledgeGraphRAGRetriever",
    "NLSQLRetriever",
    "PGRetriever",
    "SQLRetriever",
    "SummaryIndexLLMRetriever",
    "TreeAllLeafRetriever",
    "TreeRootRetriever",
    "TreeSelectLeafRetriever",
)
_COMPONENTS: tuple[type, ...] = (
    BaseSynthesizer,
    BaseQueryEngine,
    BaseChatEngine,
    BaseTool,
    BaseRetriever,
    BaseWorkflowAgent,
    Workflow,
    LoadAndSearchToolSpec,
)


def find_undefended(engine: object, *, trusted: Collection[object] = ()) -> Findings:
    """Find places where known parts of a program show retrieved text to a model without isolation, with their fixes.

    Known are the engines, chat engines, synthesizers, agents, tools, retrievers and rerankers of llama-index-core. Not
    looked into is what functions and steps of workflows do (it is seen what they hold), and what retrievers,
    postprocessors, tools and agents of your own do: `not_looked_into` of the result names them, and `audit_isolation()`
    sees at run time what reaches a prompt there. A query or chat engine of your own is a finding.

    Args:
        engine: a query engine, chat engine, agent, workflow, tool, function, response synthesizer, retriever, or a list
            of them.
        trusted: objects or classes that keep documents apart, or show no model what they retrieve.

    Returns:
        The findings, with `not_looked_into`.

    Raises:
        TypeError: nothing that can be checked, alone or in a list, or a name among `trusted`.
    """
    walk = _Walk(trusting(trusted))
    for path, part in parts_of(engine):
        if not isinstance(part, (*_COMPONENTS, FunctionType, MethodType, functools.partial)):
            raise TypeError(
                f"cannot check a {type(part).__name__}{f' at {path}' if path else ''}; pass the query engine, chat "
                "engine, agent or tool that people use"
            )
        walk.visit(part, path)
    return walk.findings


def assert_defended(engine: object, *, trusted: Collection[object] = ()) -> None:
    """Raise if known parts of a program show retrieved text to a model; warn of parts that were not searched.

    Args:
        engine: see `find_undefended`.
        trusted: see there.

    Raises:
        UndefendedError: they do; the message lists every place and its fix.
        TypeError: nothing that can be checked, alone or in a list, or a name among `trusted`.
    """
    find_undefended(engine, trusted=trusted).raise_any()


@dataclass(frozen=True)
class _Rule:
    """The finding to report for a class, and its parts to visit."""

    parts: tuple[str, ...] = ()
    wrong: tuple[str, str, str] | None = None  # kind, problem, fix
    more: Callable[[_Walk, Any, str], None] | None = None


class _Walk:
    """One walk over the parts of a program, each object once."""

    def __init__(self, trusted: Callable[[object], bool]) -> None:
        self.trusted, self.findings = trusted, Findings()
        self._seen: dict[int, object] = {}

    def visit(self, thing: Any, path: str) -> None:
        """Report what is wrong with an object, and visit its parts."""
        if thing is None or id(thing) in self._seen or self.trusted(thing):
            return
        self._seen[id(thing)] = thing
        if isinstance(thing, (list, tuple, dict)):
            for at, item in thing.items() if isinstance(thing, dict) else enumerate(thing):
                self.visit(item, f"{path}[{at!r:.60}]")
        elif isinstance(thing, (FunctionType, MethodType, functools.partial)):
            self._function(thing, path)
        elif rule := next((_RULES[kind] for kind in type(thing).__mro__ if kind in _RULES), None):
            own = not is_library(type(thing))
            rule = _UNKNOWN if own and isinstance(thing, (BaseQueryEngine, BaseChatEngine)) else rule
            if own:
                self.findings.skip(path, thing)
            if rule.wrong is not None:
                self._report(rule.wrong, path, thing)
            if rule.more is not None:
                rule.more(self, thing, path)
            for name in rule.parts:
                self.visit(getattr(thing, name, None), f"{path}.{name}")

    def _report(self, wrong: tuple[str, str, str], path: str, thing: object) -> None:
        kind, problem, fix = wrong
        self.findings.report(kind, path, thing, problem, fix)

    def _function(self, function: Any, path: str) -> None:
        """Visit the engines and tools that a function holds; report retrievers, unless it holds a component of ours."""
        held = [(at, value) for at, value in held_by(function) if not self.trusted(value)]
        self.findings.skip(path, function)
        for at, value in held:
            if not isinstance(value, BaseRetriever):
                if isinstance(value, _COMPONENTS):
                    self.visit(value, f"{path}{at}")
            elif not any(isinstance(other, _OURS) for _, other in held):
                problem = f"what it retrieves (with {type(value).__name__} at {path}{at}) goes on as it is"
                fix = f"ask {_ENGINE} in it, or pass it in trusted="
                self._report(("retrieving-function", problem, fix), path, function)

    def splits(self, thing: Any, path: str) -> None:
        synthesizer = thing._response_synthesizer
        if isinstance(synthesizer, RobustRAGSynthesizer) and synthesizer.group_by == "passage":
            self._report(_SPLIT, path, thing)
        self.postprocessors(thing, path)

    def router(self, thing: Any, path: str) -> None:
        selector, tools = getattr(thing, "_selector", None), getattr(thing, "_retriever", None)
        several = tools is not None or len(getattr(thing, "_query_engines", ())) > 1
        single = type(selector) in _ONE_CHOICE or self.trusted(selector)
        if several and not single and type(getattr(thing, "_summarizer", None)) is not RobustRAGSynthesizer:
            self._report(_ROUTER, path, thing)
        self._tools_unknown(tools, f"{path}._retriever")

    def agent(self, thing: Any, path: str) -> None:
        self._tools_unknown(getattr(thing, "tool_retriever", None), f"{path}.tool_retriever")

    def _tools_unknown(self, thing: Any, path: str) -> None:
        if thing is not None and not self.trusted(thing):
            self._report(_TOOLS, path, thing)

    def composed(self, thing: Any, path: str) -> None:
        """Report composed engines: inner engines read documents, the outer synthesizer reads their answers."""
        if isinstance(getattr(thing, "_response_synthesizer", None), RobustRAGSynthesizer):
            self._report(_OUTER, f"{path}._response_synthesizer", thing)

    def function_tool(self, thing: Any, path: str) -> None:
        names = ("_real_fn",) if getattr(thing, "_real_fn", None) is not None else ("_fn", "_async_fn")
        for name in (*names, "_callback", "_async_callback", "partial_params"):
            self.visit(getattr(thing, name, None), path)

    def skipped(self, thing: Any, path: str) -> None:
        self.findings.skip(path, thing)

    def workflow(self, thing: Any, path: str) -> None:
        """Visit the engines and synthesizers that a workflow holds."""
        for name, value in vars(thing).items():
            if isinstance(value, _COMPONENTS):
                self.visit(value, f"{path}.{name}")

    def retriever(self, thing: Any, path: str) -> None:
        if not _names_of(thing).isdisjoint(_JOINT_RETRIEVERS):
            self._report(_JOINT, path, thing)
        for name, engine in (getattr(thing, "object_map", None) or {}).items():
            if isinstance(engine, BaseQueryEngine) and not self.trusted(engine):
                self._report(_ENGINE_AS_NODE, f"{path}.object_map[{name!r:.60}]", engine)

    def postprocessors(self, thing: object, path: str) -> None:
        for at, postprocessor in enumerate(getattr(thing, "_node_postprocessors", None) or ()):
            place, names = f"{path}._node_postprocessors[{at}]", _names_of(postprocessor)
            if self.trusted(postprocessor):
                continue
            if not names.isdisjoint(_JOINT_RERANKERS):
                self._report(_RERANKER, place, postprocessor)
            elif not names.isdisjoint(_MERGING):
                self._report(_MERGED, place, postprocessor)
            elif not is_library(type(postprocessor)):
                self.findings.skip(place, postprocessor)


def _names_of(thing: object) -> set[str]:
    """Return the names of an object's framework classes."""
    return {kind.__name__ for kind in type(thing).__mro__ if is_library(kind)}


_STOCK = (
    "stock-synthesizer",
    "it puts the texts of several documents into one prompt, or lets one document answer several times",
    "pass response_synthesizer=RobustRAGSynthesizer(llm=llm)",
)
_SPLIT = (
    "split-nodes",
    "it splits each node into several, and group_by='passage' gives each of them a vote",
    "leave group_by out of the RobustRAGSynthesizer",
)
_CHAT = (
    "context-chat",
    "it puts everything that was retrieved into one system prompt; a response_synthesizer given to as_chat_engine is "
    "never called in this mode",
    "use RobustContextChatEngine or RobustCondensePlusContextChatEngine.from_defaults(retriever, llm=llm), or "
    "chat_mode='condense_question'",
)
_ROUTER = (
    "multi-select-router",
    "it may choose several engines and merge their answers with TreeSummarize: all of them in one prompt, and the "
    "robustrag report is dropped",
    "use a single selector (LLMSingleSelector, PydanticSingleSelector, EmbeddingSingleSelector), or pass "
    "summarizer=RobustRAGSynthesizer(llm=llm); list a single selector of your own in trusted=",
)
_OUTER = (
    "outer-synthesizer",
    "each sub-answer is unique, so aggregation drops them all as unsupported",
    "give the RobustRAGSynthesizer to the inner engines, and leave the outer one as it was",
)
_JUDGE = (
    "joint-evaluator",
    "its evaluator reads the texts of all sources in one prompt, so one document can have a good answer rejected",
    "use the inner engine by itself, and its robustrag report (radius, abstained) to decide whether to ask again",
)
_TOOL = (
    "retriever-tool",
    "the agent's model reads the retrieved texts as they are; nothing is aggregated",
    f"use QueryEngineTool.from_defaults({_ENGINE}.for_prompts())",
)
_LOADING = (
    "loading-tool",
    "it answers from an index of its own with a stock engine, which puts several documents into one prompt",
    f"build the index yourself and use QueryEngineTool.from_defaults({_ENGINE}.for_prompts())",
)
_TOOLS = (
    "tool-retriever",
    "the tools are only known when it runs, so they cannot be checked here",
    "check the list of tools before indexing it, with assert_defended(tools), and pass it in trusted=",
)
_JOINT = (
    "joint-retriever",
    "it merges several documents into one node, or lets a model read several of them to choose, so one document can "
    "speak for others or keep them out",
    "use a retriever that gives each document's own nodes, such as VectorStoreIndex(...).as_retriever()",
)
_ENGINE_AS_NODE = (
    "engine-as-node",
    "its answer becomes a node together with the metadata of all its source nodes, so one document's metadata can "
    "speak for all of them",
    "ask it through RecursiveRetriever(root, retriever_dict=..., query_engine_dict=...), which takes the answer alone",
)
_RERANKER = (
    "joint-reranker",
    "one prompt holds the texts of several documents, so one of them can decide which others are read",
    "rerank each text by itself, with SentenceTransformerRerank or another cross-encoder",
)
_MERGED = (
    "merging-postprocessor",
    "it makes one node of several documents, which then share a group",
    "leave it out; RobustRAGSynthesizer cuts each group to the window by itself",
)
_UNKNOWN = _Rule(
    wrong=(
        "unknown",
        "what it does with retrieved text is not known",
        f"answer with {_ENGINE}, or, if it isolates documents itself, pass it or its class in trusted=",
    )
)
_READS = ("_retriever", "_response_synthesizer")
_RETRIEVES = ("_retriever", "_retrievers", "_retrievers_dict", "_vector_retriever", "_query_engine_dict", "_fetch")
_RULES: dict[type, _Rule] = {
    RobustRAGSynthesizer: _Rule(),
    BaseSynthesizer: _Rule(wrong=_STOCK),
    RetrieverQueryEngine: _Rule(_READS, more=_Walk.postprocessors),
    CitationQueryEngine: _Rule(_READS, more=_Walk.splits),
    ReportingChatEngine: _Rule(("_retriever",), more=_Walk.postprocessors),
    **dict.fromkeys((ContextChatEngine, CondensePlusContextChatEngine), _Rule(wrong=_CHAT)),
    SimpleChatEngine: _Rule(),
    **dict.fromkeys((RouterQueryEngine, ToolRetrieverRouterQueryEngine), _Rule(("_query_engines",), more=_Walk.router)),
    **dict.fromkeys(
        (SubQuestionQueryEngine, MultiStepQueryEngine, QueryPlanTool),
        _Rule(("_query_engines", "_query_engine", "_query_tools_dict"), more=_Walk.composed),
    ),
    **dict.fromkeys(
        (RetryQueryEngine, RetryGuidelineQueryEngine, RetrySourceQueryEngine, EvalQueryEngineTool),
        _Rule(("_query_engine",), _JUDGE),
    ),
    **dict.fromkeys(
        (TransformQueryEngine, FLAREInstructQueryEngine, QueryEngineTool, CondenseQuestionChatEngine),
        _Rule(("_query_engine",)),
    ),
    **dict.fromkeys((BaseQueryEngine, BaseChatEngine), _UNKNOWN),
    RetrieverTool: _Rule(wrong=_TOOL),
    **dict.fromkeys((OnDemandLoaderTool, LoadAndSearchToolSpec), _Rule(wrong=_LOADING)),
    FunctionTool: _Rule(more=_Walk.function_tool),
    BaseTool: _Rule(more=_Walk.skipped),
    **dict.fromkeys((BaseWorkflowAgent, AgentWorkflow), _Rule(("tools", "agents"), more=_Walk.agent)),
    Workflow: _Rule(more=_Walk.workflow),
    BaseRetriever: _Rule(_RETRIEVES, more=_Walk.retriever),
}
