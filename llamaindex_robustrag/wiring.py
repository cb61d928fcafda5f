"""A static wiring check: finds where known classes show retrieved text to a model without isolation.

A table says of each known class of llama-index-core what is wrong with it. What functions and other classes do with
retrieved text, only the audit at run time sees.
"""

from __future__ import annotations

from typing import Any

from llamaindex_robustrag.chat_engines import ReportingChatEngine
from llamaindex_robustrag.synthesizer import RobustRAGSynthesizer
from robustrag_integrations.audit.findings import Finding
from robustrag_integrations.errors import UndefendedError

_ENGINE = "RobustRAGQueryEngine.from_args(retriever, llm=llm)"
_PARTS = (
    *("_retriever", "_retrievers", "_retrievers_dict", "_vector_retriever", "_query_engine", "_query_engines"),
    *("_query_engine_dict", "_query_tools_dict", "_response_synthesizer", "_node_postprocessors", "tools", "agents"),
)
_CHECKED = (
    *("BaseQueryEngine", "BaseChatEngine", "BaseSynthesizer", "BaseRetriever", "BaseTool", "BaseWorkflowAgent"),
    *("AgentWorkflow", "LoadAndSearchToolSpec"),
)
_COMPOSED = ("SubQuestionQueryEngine", "MultiStepQueryEngine", "QueryPlanTool")
_ROUTERS = ("RouterQueryEngine", "ToolRetrieverRouterQueryEngine")
_ONE_CHOICE = ("LLMSingleSelector", "PydanticSingleSelector", "EmbeddingSingleSelector")
_JOINT = (
    "joint-retriever",
    "it merges several documents into one node, or lets a model read several of them to choose, so one document can "
    "speak for others or keep them out",
    "use a retriever that gives each document's own nodes, such as VectorStoreIndex(...).as_retriever()",
)
_RERANKER = (
    "joint-reranker",
    "one prompt holds the texts of several documents, so one of them can decide which others are read",
    "rerank each text by itself, with SentenceTransformerRerank or another cross-encoder",
)
_CHAT = (
    "context-chat",
    "it puts everything that was retrieved into one system prompt; a response_synthesizer given to as_chat_engine is "
    "never called in this mode",
    "use RobustContextChatEngine or RobustCondensePlusContextChatEngine.from_defaults(retriever, llm=llm), or "
    "chat_mode='condense_question'",
)
_JUDGE = (
    "joint-evaluator",
    "its evaluator reads the texts of all sources in one prompt, so one document can have a good answer rejected",
    "use the inner engine by itself, and its robustrag report (radius, abstained) to decide whether to ask again",
)
_LOADING = (
    "loading-tool",
    "it answers from an index of its own with a stock engine, which puts several documents into one prompt",
    f"build the index yourself and use QueryEngineTool.from_defaults({_ENGINE}.for_prompts())",
)
_OUTER = (
    "outer-synthesizer",
    "each sub-answer is unique, so aggregation drops them all as unsupported",
    "give the RobustRAGSynthesizer to the inner engines, and leave the outer one as it was",
)
_RETRIEVED_TOOLS = (
    "tool-retriever",
    "its tools are found as it runs, so they cannot be checked here",
    "pass tools=[...], or check the tools by themselves and watch it with audit_isolation()",
)
_ROUTER = (
    "multi-select-router",
    "it may choose several engines and merge their answers with TreeSummarize: all of them in one prompt, and the "
    "robustrag report is dropped",
    "use a single selector (LLMSingleSelector, PydanticSingleSelector, EmbeddingSingleSelector), or pass "
    "summarizer=RobustRAGSynthesizer(llm=llm)",
)
_WRONG: dict[str, tuple[str, str, str]] = {  # class: kind, problem, fix
    "BaseSynthesizer": (
        "stock-synthesizer",
        "it puts the texts of several documents into one prompt, or lets one document answer several times",
        "pass response_synthesizer=RobustRAGSynthesizer(llm=llm)",
    ),
    "RetrieverTool": (
        "retriever-tool",
        "the agent's model reads the retrieved texts as they are; nothing is aggregated",
        f"use QueryEngineTool.from_defaults({_ENGINE}.for_prompts())",
    ),
    "LongLLMLinguaPostprocessor": (
        "merging-postprocessor",
        "it makes one node of several documents, which then share a group",
        "leave it out; RobustRAGSynthesizer cuts each group to the window by itself",
    ),
    **dict.fromkeys(("ContextChatEngine", "CondensePlusContextChatEngine"), _CHAT),
    **dict.fromkeys(("RetryQueryEngine", "RetryGuidelineQueryEngine", "RetrySourceQueryEngine"), _JUDGE),
    "EvalQueryEngineTool": _JUDGE,
    **dict.fromkeys(("OnDemandLoaderTool", "LoadAndSearchToolSpec"), _LOADING),
    **dict.fromkeys(("LLMRerank", "RankGPTRerank", "StructuredLLMRerank", "RankLLMRerank"), _RERANKER),
    **dict.fromkeys(("DocumentSummaryIndexLLMRetriever", "SummaryIndexLLMRetriever"), _JOINT),
    **dict.fromkeys(("TreeAllLeafRetriever", "TreeRootRetriever", "TreeSelectLeafRetriever"), _JOINT),
    **dict.fromkeys(("BasePGRetriever", "PGRetriever", "KGTableRetriever", "KnowledgeGraphRAGRetriever"), _JOINT),
    **dict.fromkeys(("NLSQLRetriever", "SQLRetriever"), _JOINT),
}


def find_undefended(engine: object) -> list[Finding]:
    """Find places where known classes show retrieved text to a model without isolation, with their fixes.

    Known are the engines, chat engines, synthesizers, agents, tools, retrievers and rerankers of llama-index-core. What
    functions and classes of your own do is not looked into: `audit_isolation()` sees at run time what reaches a prompt
    there.

    Args:
        engine: a query engine, chat engine, agent, tool, response synthesizer, retriever, or a list of them.

    Raises:
        TypeError: something else, alone or in a list, or an empty list.
    """
    parts = engine if isinstance(engine, list) else [engine]
    if wrong := [part for part in parts or [engine] if {*_names_of(part)}.isdisjoint(_CHECKED)]:
        raise TypeError(
            f"cannot check a {type(wrong[0]).__name__}; pass the query engine, agent or tool that people use"
        )
    findings: list[Finding] = []
    _visit(engine, "", findings, set())
    return findings


def assert_defended(engine: object) -> None:
    """Raise if known classes show retrieved text to a model.

    Args:
        engine: see `find_undefended`.

    Raises:
        UndefendedError: they do; the message lists every place and its fix.
        TypeError: as `find_undefended`.
    """
    if findings := find_undefended(engine):
        raise UndefendedError(findings)


def _visit(thing: Any, path: str, findings: list[Finding], seen: set[int]) -> None:
    """Add what is wrong with an object and its parts to the findings."""
    if thing is None or id(thing) in seen:
        return
    seen.add(id(thing))
    if isinstance(thing, (list, tuple, dict)):
        for at, item in thing.items() if isinstance(thing, dict) else enumerate(thing):
            _visit(item, f"{path}[{at!r:.60}]", findings, seen)
        return
    names = _names_of(thing)
    composed = not {*_COMPOSED}.isdisjoint(names)
    wrong = None if _is_ours(thing) else next((_WRONG[name] for name in names if name in _WRONG), None)
    if composed and _is_ours(getattr(thing, "_response_synthesizer", None)):
        wrong = _OUTER
    elif not {*_ROUTERS}.isdisjoint(names) and _may_merge(thing):
        wrong = _ROUTER
    if wrong is not None:
        findings.append(Finding(wrong[0], path, type(thing).__name__, *wrong[1:]))
    if getattr(thing, "tool_retriever", None) is not None:
        findings.append(Finding(_RETRIEVED_TOOLS[0], path, type(thing).__name__, *_RETRIEVED_TOOLS[1:]))
    for name in _PARTS:
        if not (composed and name == "_response_synthesizer"):
            _visit(getattr(thing, name, None), f"{path}.{name}", findings, seen)


def _names_of(thing: object) -> list[str]:
    """Return the names of the framework's classes that an object is an instance of."""
    return [kind.__name__ for kind in type(thing).__mro__ if kind.__module__.startswith("llama_index")]


def _is_ours(thing: object) -> bool:
    return isinstance(thing, (RobustRAGSynthesizer, ReportingChatEngine))


def _may_merge(router: Any) -> bool:
    """True if a router may merge the answers of several engines with a stock synthesizer."""
    several = getattr(router, "_retriever", None) is not None or len(getattr(router, "_query_engines", ())) > 1
    single = type(getattr(router, "_selector", None)).__name__ in _ONE_CHOICE
    return several and not single and not _is_ours(getattr(router, "_summarizer", None))
