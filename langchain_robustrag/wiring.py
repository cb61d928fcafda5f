"""A static wiring check: finds where known parts of a program show retrieved text to a model without isolation.

A chain is followed from step to step: what a step is given is a `Flow`, retrieved text as a whole or under some keys.
Functions, node functions of graphs and tools are judged by what they hold; what they do is not looked into.
"""

from __future__ import annotations

import functools
import operator
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from types import FunctionType, MethodType
from typing import Any

from langchain_core.language_models import BaseLanguageModel
from langchain_core.output_parsers import BaseOutputParser
from langchain_core.prompts import BasePromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import (
    Runnable,
    RunnableAssign,
    RunnableBranch,
    RunnableGenerator,
    RunnableLambda,
    RunnableParallel,
    RunnablePassthrough,
    RunnablePick,
    RunnableSequence,
    RunnableWithFallbacks,
)
from langchain_core.runnables.base import RunnableBindingBase, RunnableEachBase
from langchain_core.runnables.configurable import DynamicRunnable
from langchain_core.tools import BaseTool
from langchain_core.tools.retriever import RetrieverInput
from langchain_core.vectorstores import VectorStore

from langchain_robustrag.graph import RobustNode
from langchain_robustrag.prompts import shown_names
from langchain_robustrag.retrieval import RobustRetrievalChain
from langchain_robustrag.runnable import RobustDocuments
from langchain_robustrag.tool import RobustRetrieverTool
from robustrag_integrations.audit.wiring import (
    Findings,
    constants_of,
    directly_held,
    held_by,
    is_library,
    parts_of,
    trusting,
)

_CHAIN = "create_robust_documents_chain(llm, prompt)"
_CLASSIC = "langchain_classic"
_GRAPHS = (("langgraph.pregel", "Pregel"), ("langgraph.graph.state", "StateGraph"))
_TOOL_NODES = (("langgraph.prebuilt.tool_node", "ToolNode"), ("langchain.tools.tool_node", "_ToolNode"))
_NODES = (("langgraph._internal._runnable", "RunnableCallable"), ("langgraph.utils.runnable", "RunnableCallable"))
_MIDDLEWARE = ("langchain.agents.middleware", "AgentMiddleware")
_OUR_MIDDLEWARE = ("langchain_robustrag.middleware", "RobustRetrievalMiddleware")
_OUR_CLASSIC = ("langchain_robustrag.classic", "RobustDocumentsChain")
_COMBINING = (f"{_CLASSIC}.chains.combine_documents.base", "BaseCombineDocumentsChain")
_CHAINS = (f"{_CLASSIC}.chains.base", "Chain")
_LISTWISE = (f"{_CLASSIC}.retrievers.document_compressors.listwise_rerank", "LLMListwiseRerank")
_CHOSEN = (("langchain.chat_models.base", "_ConfigurableModel"), (f"{_CLASSIC}.chat_models.base", "_ConfigurableModel"))
_OF_THE_PROGRAM = frozenset({"function", "input_schema", "parameters", "args_schema"})  # of a tool that it runs itself


@dataclass(frozen=True)
class Flow:
    """The sources of the retrieved text in a step's input.

    Attributes:
        whole: the source, if the value itself is retrieved text; empty if not.
        keys: the same for keys of a dict.
    """

    whole: str = ""
    keys: Mapping[str, str] = field(default_factory=dict)

    @property
    def source(self) -> str:
        """One of the sources."""
        return self.whole or next(iter(self.keys.values()), "")

    def of(self, names: Collection[object]) -> str:
        """Return the source of the text under any of these keys."""
        return self.whole or next((source for key, source in self.keys.items() if key in names), "")

    def joined(self, other: Flow) -> Flow:
        """Return the sources of both flows together."""
        return Flow(self.whole or other.whole, {**other.keys, **self.keys})


CLEAN = Flow()


def find_undefended(program: object, *, trusted: Collection[object] = ()) -> Findings:
    """Find places where known parts of a program show retrieved text to a model without isolation, with their fixes.

    Known are the classes of langchain-core, `create_agent`, graphs, `ToolNode`, retriever tools, and the chains of
    langchain-classic. Not looked into is what functions do (of functions and tools it is seen what they hold), what
    classes of your own do, and how a graph's nodes use its state: `not_looked_into` of the result names them, and
    `audit_isolation()` sees at run time what reaches a prompt there. A `Runnable` of your own is a finding.

    Args:
        program: a chain, an agent, a graph (compiled or not), a tool, a function, a middleware, or a list of them.
        trusted: what is fine: tools, functions, Runnables or other objects themselves, or classes of them.

    Returns:
        The findings, with `not_looked_into`.

    Raises:
        TypeError: nothing that can be checked, alone or in a list, or a name among `trusted`.
    """
    walk = _Walk(trusting(trusted))
    for path, part in parts_of(program):
        walk.top(part, path)
    return walk.findings


def assert_defended(program: object, *, trusted: Collection[object] = ()) -> None:
    """Raise if known parts of a program show retrieved text to a model; warn of parts that were not searched.

    Args:
        program: see `find_undefended`.
        trusted: see there.

    Raises:
        UndefendedError: they do; the message lists every place and its fix.
        TypeError: nothing that can be checked, alone or in a list, or a name among `trusted`.
    """
    find_undefended(program, trusted=trusted).raise_any()


class _Walk:
    """One walk over the parts of a program."""

    def __init__(self, trusted: Callable[[object], bool]) -> None:
        self.trusted, self.findings = trusted, Findings()
        self._under_way: set[int] = set()

    def top(self, thing: Any, path: str) -> None:
        if _is_ours(thing) and not isinstance(thing, Runnable):
            return
        if isinstance(thing, BaseTool):
            self._tool(thing, path)
        elif isinstance(thing, Runnable) or _is_a(thing, *_GRAPHS):
            self.flow(thing, CLEAN, path)
        elif _is_a(thing, _MIDDLEWARE):
            self._middleware(thing, path)
        elif callable(thing) and not isinstance(thing, type):
            self._function(thing, CLEAN, path)
        else:
            raise TypeError(
                f"cannot check a {type(thing).__name__}{f' at {path}' if path else ''}; pass the chain, agent, graph, "
                "tool or function that people use"
            )

    def _middleware(self, thing: Any, path: str) -> None:
        """Check the program's own hooks: a model may be shown what they retrieve."""
        for hook in ("before_agent", "before_model", "wrap_model_call", "wrap_tool_call"):
            for function in _behind(getattr(thing, hook)):
                if isinstance(function, (FunctionType, MethodType)) and not is_library(function):
                    self._function(function, CLEAN, f"{path}.{hook}", shows=True)

    def flow(self, thing: Any, given: Flow, path: str) -> Flow:
        """Return the output flow of a step for this input; add findings on the way."""
        if self.trusted(thing):
            return CLEAN
        if id(thing) in self._under_way:
            return given
        self._under_way.add(id(thing))
        try:
            return self._ours(thing, given, path) if _is_ours(thing) else self._step(thing, given, path)
        finally:
            self._under_way.discard(id(thing))

    def _step(self, thing: Any, given: Flow, path: str) -> Flow:
        if isinstance(thing, BaseLanguageModel) or _is_a(thing, *_CHOSEN):
            if given.source:
                self._raw_prompt(thing, given.source, path)
            return CLEAN
        if isinstance(thing, BaseRetriever):
            self._reranker(thing, path)
            return Flow(_named(path, thing))
        if isinstance(thing, BaseTool):
            return Flow(self._source_of(thing, path) or "")
        if _is_a(thing, *_GRAPHS):
            return self._graph(thing, path)
        if _is_a(thing, *_TOOL_NODES):
            return self._tool_node(thing, path)
        if _is_a(thing, *_NODES):
            return self._nodes(thing, path)
        if _is_a(thing, _CHAINS):
            return self._classic(thing, path)
        for kind, rule in _RULES.items():
            if isinstance(thing, kind) and is_library(type(thing)):
                return rule(self, thing, given, path)
        if isinstance(thing, (BasePromptTemplate, BaseOutputParser)) or is_library(type(thing)):
            self.findings.skip(path, thing)
            return given
        self.findings.report(
            "unknown-step",
            path,
            thing,
            "what it does with retrieved text is not known",
            f"answer with {_CHAIN}, or, if it isolates documents itself, pass it in trusted=",
        )
        return given

    def _ours(self, thing: Any, given: Flow, path: str) -> Flow:
        if isinstance(thing, RobustDocuments):
            return self._documents(thing, given, path)
        if isinstance(thing, RobustNode):
            self._documents(thing.answering, CLEAN, f"{path}.answering")
        if not isinstance(thing, RobustRetrievalChain):
            return CLEAN
        self.flow(thing.retriever, CLEAN, f"{path}.retriever")
        context = thing.answering.document_variable_name
        kept = {key: source for key, source in given.keys.items() if key != context}
        found = self._documents(thing.answering, Flow(keys=kept), path)
        return Flow(keys={**kept, **found.keys, context: _named(path, thing)})

    def _documents(self, thing: RobustDocuments, given: Flow, path: str) -> Flow:
        """Check a chain of ours: its prompts' other inputs, and its models."""
        context = thing.document_variable_name
        for name in sorted(shown_names(*thing.all_prompts()) - {context}):
            if source := given.keys.get(name):
                self.findings.report(
                    "raw-input",
                    f"{path}[{name!r}]",
                    thing,
                    f"the prompt's input {name!r} holds retrieved text (from {source}), which is not isolated there",
                    f"give documents as {context!r} alone",
                )
        for name in ("llm", "final_llm"):
            model = getattr(thing, name)
            if isinstance(model, Runnable) and self.flow(model, CLEAN, f"{path}.{name}").source:
                self._raw_prompt(model, f"{path}.{name}", path)
        return Flow(keys={"robustness": _named(path, thing)} if thing.return_robustness else {})

    def _raw_prompt(self, thing: object, source: str, path: str) -> None:
        self.findings.report(
            "raw-prompt",
            path,
            thing,
            f"retrieved text (from {source}) is put into its prompt as it is",
            f"answer with {_CHAIN} in place of the prompt and the model",
        )

    def sequence(self, thing: RunnableSequence[Any, Any], given: Flow, path: str) -> Flow:
        for at, step in enumerate(thing.steps):
            given = self.flow(step, given, f"{path}.steps[{at}]")
        return given

    def parallel(self, thing: RunnableParallel[Any], given: Flow, path: str) -> Flow:
        flows = {name: self.flow(step, given, f"{path}[{name!r}]").source for name, step in thing.steps__.items()}
        return Flow(keys={name: source for name, source in flows.items() if source})

    def assign(self, thing: RunnableAssign, given: Flow, path: str) -> Flow:
        added = self.parallel(thing.mapper, given, path)
        kept = {name: source for name, source in given.keys.items() if name not in thing.mapper.steps__}
        return Flow(given.whole, {**kept, **added.keys})

    def pick(self, thing: RunnablePick, given: Flow, path: str) -> Flow:
        if isinstance(thing.keys, str):
            return Flow(given.of([thing.keys]))
        return Flow(given.whole, {k: s for k, s in given.keys.items() if k in thing.keys})

    def several(self, thing: Any, given: Flow, path: str) -> Flow:
        """Follow fallbacks, branches and alternatives: any of them may run."""
        steps = [*getattr(thing, "runnables", ()), *(step for _, step in getattr(thing, "branches", ()))]
        steps += [getattr(thing, "default", None), *getattr(thing, "alternatives", {}).values()]
        found = CLEAN
        for at, step in enumerate(step for step in steps if isinstance(step, Runnable)):
            found = found.joined(self.flow(step, given, f"{path}[{at}]"))
        return found

    def bound(self, thing: Any, given: Flow, path: str) -> Flow:
        self._server_tools((getattr(thing, "kwargs", None) or {}).get("tools"), path)
        return self.flow(thing.bound, given, f"{path}.bound")

    def prompt(self, thing: BasePromptTemplate[Any], given: Flow, path: str) -> Flow:
        return Flow(given.of(shown_names(thing)))

    def passed(self, thing: Any, given: Flow, path: str) -> Flow:
        return given

    def function(self, thing: Any, given: Flow, path: str) -> Flow:
        names = ("func", "afunc") if isinstance(thing, RunnableLambda) else ("_transform", "_atransform")
        functions = [f for name in names if (f := vars(thing).get(name)) is not None]
        found = CLEAN
        for function in functions:
            found = found.joined(self._function(function, given, path))
        return found

    def _function(self, function: Any, given: Flow, path: str, *, shows: bool = False) -> Flow:
        """Follow a function: retrieved text given whole is passed on; otherwise what it holds and names decides."""
        if self.trusted(function):
            return CLEAN
        if isinstance(function, operator.itemgetter):
            return Flow(given.of(function.__reduce__()[1]))
        if getattr(function, "__qualname__", "").startswith("create_stuff_documents_chain."):
            return Flow(given.source or f"the documents that {path} is given")
        if is_library(function):
            return Flow(given.source)
        held = self._held(function, path)
        sources = [source for source, _, _ in held if source]
        models = [at for _, at, value in held if isinstance(value, BaseLanguageModel)]
        if any(_is_ours(value) for _, _, value in held):
            sources = []
        named = given.of(constants_of(function))
        if (sources or named) and (models or shows):
            self._raw_prompt(function, (sources or [named])[0], path)
            return CLEAN
        self.findings.skip(path, function)
        return Flow(sources[0] if sources else named)

    def _held(self, function: Any, path: str) -> list[tuple[str, str, object]]:
        """Return the objects that a function holds, each with its source of retrieved text, if any, and its place."""
        found: list[tuple[str, str, object]] = []
        for at, value in held_by(function):
            source = ""
            if isinstance(value, (BaseRetriever, VectorStore)) and not self.trusted(value):
                source = _named(f"{path}{at}", value)
            elif isinstance(value, BaseTool) and not self.trusted(value):
                source = self._source_of(value, f"{path}{at}")
            elif isinstance(value, Runnable) and not isinstance(value, BaseLanguageModel):
                source = self.flow(value, CLEAN, f"{path}{at}").whole
            found.append((source, f"{path}{at}", value))
        return found

    def _source_of(self, tool: BaseTool, path: str) -> str:
        """Return the source of the retrieved text that a tool gives; empty if it is not known to give any."""
        functions = [f for name in ("func", "coroutine") if (f := getattr(tool, name, None)) is not None]
        if self.trusted(tool) or any(map(self.trusted, functions)) or type(tool) is RobustRetrieverTool:
            return ""
        if getattr(tool, "args_schema", None) is RetrieverInput:
            return _named(path, tool)
        if id(tool) in self._under_way:
            return ""
        self._under_way.add(id(tool))
        held = [found for function in functions or [tool._run] for found in self._held(function, path)]
        self._under_way.discard(id(tool))
        self.findings.skip(path, tool)
        # A function that answers with ours may retrieve for it; a store that it holds, it may write to.
        if any(_is_ours(value) for _, _, value in held):
            return ""
        return next((source for source, _, value in held if source and not isinstance(value, VectorStore)), "")

    def _tool(self, tool: BaseTool, path: str) -> None:
        if source := self._source_of(tool, path):
            self.findings.report(
                "retrieving-tool",
                path,
                tool,
                f"the agent's model reads what {tool.name!r} retrieves (from {source}) as it is",
                f"use create_robust_retriever_tool, or RobustRetrievalMiddleware(reader, tools=[{tool.name!r}])",
            )

    def _tool_node(self, node: Any, path: str) -> Flow:
        wrapped: list[Any] = list(_behind(getattr(node, "_wrap_tool_call", None)))
        results = [m.results for m in wrapped if _is_a(m, _OUR_MIDDLEWARE)]
        for name, tool in node.tools_by_name.items():
            if not results or results[0].passes(name, tool):
                self._tool(tool, f"{path}.tools[{name!r}]")
        return CLEAN

    def _graph(self, graph: Any, path: str) -> Flow:
        """Follow each node by itself; the nodes' use of the state is not analysed."""
        for name, spec in getattr(graph, "builder", graph).nodes.items():
            node = getattr(spec, "runnable", None) or getattr(spec, "bound", spec)
            if not name.startswith("__"):
                self.flow(node, CLEAN, f"{path}.nodes[{name!r}]")
        return CLEAN

    def _nodes(self, node: Any, path: str) -> Flow:
        """Unwrap LangGraph's wrapper around a function; in an agent's model node, the tools that the provider runs."""
        for name in ("func", "afunc"):
            function = getattr(node, name, None)
            while isinstance(function, functools.partial):
                function = function.args[-1] if is_library(function.func) and function.args else function.func
            if function is None or self.trusted(function):
                continue
            if not is_library(function):
                self._function(function, CLEAN, path, shows=_is_a(getattr(function, "__self__", None), _MIDDLEWARE))
                continue
            for inner in _behind(function):
                self._server_tools(inner, path)
                if isinstance(inner, (FunctionType, MethodType)) and not is_library(inner):
                    self._function(inner, CLEAN, path, shows=True)
                elif isinstance(inner, Runnable) and not _is_a(inner, *_TOOL_NODES) and not isinstance(inner, BaseTool):
                    self.flow(inner, CLEAN, path)
        return CLEAN

    def _classic(self, chain: Any, path: str) -> Flow:
        if type(chain) in _loaded(_OUR_CLASSIC):
            return CLEAN
        if _is_a(chain, _COMBINING):
            self._raw_prompt(chain, "the documents that it is given", path)
            return CLEAN
        for name, value in vars(chain).items():
            if isinstance(value, BaseRetriever) or _is_a(value, _CHAINS):
                self.flow(value, CLEAN, f"{path}.{name}")
        return CLEAN

    def _reranker(self, retriever: Any, path: str) -> None:
        """Report rerankers of langchain-classic that show a model all documents at once."""
        compressor = getattr(retriever, "base_compressor", None)
        for inner in (compressor, *getattr(compressor, "transformers", ())):
            if _is_a(inner, _LISTWISE) and not self.trusted(inner):
                self.findings.report(
                    "reading-retriever",
                    f"{path}.base_compressor",
                    inner,
                    "its model reads several documents together, and one of them can decide which others are read",
                    "rerank with a cross-encoder that scores each document by itself",
                )
        for name in ("base_retriever", "retriever", "vectorstore"):
            if isinstance(inner := getattr(retriever, name, None), BaseRetriever):
                self._reranker(inner, f"{path}.{name}")
        for at, inner in enumerate(getattr(retriever, "retrievers", ())):
            self.flow(inner, CLEAN, f"{path}.retrievers[{at}]")
        if not is_library(type(retriever)):
            self.findings.skip(path, retriever)

    def _server_tools(self, tools: Any, path: str) -> None:
        """Report tools that the model's provider runs itself: their results pass through no code of ours."""
        for at, spec in enumerate(tools if isinstance(tools, (list, tuple)) else ()):
            if not isinstance(spec, Mapping) or not spec or self.trusted(spec) or not _OF_THE_PROGRAM.isdisjoint(spec):
                continue
            if spec.get("type") not in ("function", "custom"):
                self.findings.report(
                    "server-tool",
                    f"{path}.tools[{at}]",
                    spec,
                    f"the provider's own tool {str(spec.get('type') or next(iter(spec)))!r:.60} shows the model what "
                    "it finds as it is",
                    "retrieve with create_robust_retriever_tool, or pass this dict in trusted=",
                )


_RULES: dict[Any, Callable[[_Walk, Any, Flow, str], Flow]] = {
    RunnableSequence: _Walk.sequence,
    RunnableParallel: _Walk.parallel,
    RunnableAssign: _Walk.assign,
    RunnablePick: _Walk.pick,
    RunnablePassthrough: _Walk.passed,
    RunnableWithFallbacks: _Walk.several,
    RunnableBranch: _Walk.several,
    DynamicRunnable: _Walk.several,
    RunnableBindingBase: _Walk.bound,
    RunnableEachBase: _Walk.bound,
    RunnableLambda: _Walk.function,
    RunnableGenerator: _Walk.function,
    BasePromptTemplate: _Walk.prompt,
    BaseOutputParser: _Walk.passed,
}


def _is_ours(value: object) -> bool:
    """True for our own components, which answer from documents robustly. A subclass may do anything, so none counts."""
    ours = (RobustDocuments, RobustNode, RobustRetrievalChain, RobustRetrieverTool)
    return type(value) in (*ours, *_loaded(_OUR_MIDDLEWARE, _OUR_CLASSIC))


def _is_a(value: object, *places: tuple[str, str]) -> bool:
    return isinstance(value, _loaded(*places))


def _loaded(*places: tuple[str, str]) -> tuple[Any, ...]:
    """Return those of these classes whose modules the program has loaded."""
    found = (getattr(sys.modules.get(module), name, None) for module, name in places)
    return tuple(value for value in found if value is not None)


def _behind(thing: object, depth: int = 0) -> Iterator[object]:
    """Yield the objects in the framework's own closures, nested ones included."""
    yield thing
    if depth < 6 and isinstance(thing, (FunctionType, MethodType, functools.partial, list, tuple)):
        for _, value in directly_held(thing):
            yield from _behind(value, depth + 1)


def _named(path: str, thing: object) -> str:
    return f"{type(thing).__name__} at {path or 'the top'}"
