"""A static wiring check: finds where known classes show retrieved text to a model without isolation.

A chain is followed from step to step. A `Flow` maps each key of a step's input that holds retrieved text to the text's
source; the key None is the input as a whole. What functions and other classes do with it, only the audit at run time
sees.
"""

from __future__ import annotations

import operator
import sys
from collections.abc import Collection, Iterator, Mapping
from typing import Any, TypeAlias

from langchain_core.language_models import BaseLanguageModel
from langchain_core.output_parsers import BaseOutputParser
from langchain_core.prompts import BasePromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import (
    Runnable,
    RunnableAssign,
    RunnableBranch,
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

from langchain_robustrag.prompts import shown_names
from langchain_robustrag.retrieval import RobustRetrievalChain
from langchain_robustrag.runnable import RobustDocuments
from langchain_robustrag.tool import RobustRetrieverTool
from robustrag_integrations.audit.findings import Finding
from robustrag_integrations.errors import UndefendedError

Flow: TypeAlias = Mapping[str | None, str]

_CHAIN = "create_robust_documents_chain(llm, prompt)"
_GRAPHS = (("langgraph.pregel", "Pregel"), ("langgraph.graph.state", "StateGraph"))
_TOOL_NODES = (("langgraph.prebuilt.tool_node", "ToolNode"), ("langchain.tools.tool_node", "_ToolNode"))
_MIDDLEWARE = ("langchain_robustrag.middleware", "RobustRetrievalMiddleware")
_COMBINING = ("langchain_classic.chains.combine_documents.base", "BaseCombineDocumentsChain")
_OUR_COMBINING = ("langchain_robustrag.classic", "RobustDocumentsChain")
_CHAINS = ("langchain_classic.chains.base", "Chain")


def find_undefended(program: object) -> list[Finding]:
    """Find places where known classes show retrieved text to a model without isolation, with their fixes.

    Known are the steps of LCEL, retriever tools, the tools of agents and of `ToolNode`, `create_stuff_documents_chain`
    and the chains of langchain-classic. What functions and classes of your own do is not looked into:
    `audit_isolation()` sees at run time what reaches a prompt there.

    Args:
        program: a chain, an agent, a graph (compiled or not), a tool, or a list of them.

    Raises:
        TypeError: something else, alone or in a list, or an empty list.
    """
    walk = _Walk()
    parts = [(f"[{at}]", part) for at, part in enumerate(program)] if isinstance(program, list) else [("", program)]
    if wrong := [
        part for _, part in parts or [("", program)] if not (isinstance(part, Runnable) or _is_a(part, *_GRAPHS))
    ]:
        raise TypeError(
            f"cannot check a {type(wrong[0]).__name__}; pass the chain, agent, graph or tool that people use"
        )
    for path, part in parts:
        walk.flow(part, {}, path)
    return walk.findings


def assert_defended(program: object) -> None:
    """Raise if known classes show retrieved text to a model.

    Args:
        program: see `find_undefended`.

    Raises:
        UndefendedError: they do; the message lists every place and its fix.
        TypeError: as `find_undefended`.
    """
    if findings := find_undefended(program):
        raise UndefendedError(findings)


class _Walk:
    """One walk over the steps of a program."""

    def __init__(self) -> None:
        self.findings: list[Finding] = []

    def flow(self, thing: Any, given: Flow, path: str) -> Flow:
        """Return the output flow of a step for this input; add findings on the way."""
        source = next(iter(given.values()), "")
        if isinstance(thing, RobustDocuments):
            return {}
        if isinstance(thing, RobustRetrievalChain):
            return {thing.answering.document_variable_name: _named(path, thing)}
        if isinstance(thing, BaseLanguageModel) and source:
            self._raw_prompt(thing, source, path)
        if isinstance(thing, BaseTool):
            return self._tool(thing, path)
        if isinstance(thing, BaseRetriever):
            return {None: _named(path, thing)}
        if isinstance(thing, RunnableSequence):
            for at, step in enumerate(thing.steps):
                given = self.flow(step, given, f"{path}.steps[{at}]")
            return given
        if isinstance(thing, RunnableParallel):
            flows = {name: self.flow(step, given, f"{path}[{name!r}]") for name, step in thing.steps__.items()}
            return {name: next(iter(flow.values())) for name, flow in flows.items() if flow}
        if isinstance(thing, RunnableAssign):
            kept = {name: source for name, source in given.items() if name not in thing.mapper.steps__}
            return {**kept, **self.flow(thing.mapper, given, path)}
        if isinstance(thing, RunnablePick):
            picked = _under(given, [thing.keys] if isinstance(thing.keys, str) else thing.keys)
            return _whole(picked) if isinstance(thing.keys, str) else picked
        if isinstance(thing, (RunnableBindingBase, RunnableEachBase)):
            if (getattr(thing, "config", None) or {}).get("run_name") != "stuff_documents_chain":
                return self.flow(thing.bound, given, f"{path}.bound")
            self._raw_prompt(thing, "the documents that it is given", path)
            return {}
        if isinstance(thing, DynamicRunnable):
            steps = [thing.default, *getattr(thing, "alternatives", {}).values()]
            steps = [step for step in steps if isinstance(step, Runnable)]
            return {k: s for at, step in enumerate(steps) for k, s in self.flow(step, given, f"{path}[{at}]").items()}
        if isinstance(thing, (RunnableWithFallbacks, RunnableBranch)):
            steps = [*getattr(thing, "runnables", ()), *(step for _, step in getattr(thing, "branches", ()))]
            steps += [thing.default] if isinstance(thing, RunnableBranch) else []
            return {k: s for at, step in enumerate(steps) for k, s in self.flow(step, given, f"{path}[{at}]").items()}
        if isinstance(thing, RunnableLambda):
            return _whole(_under(given, _constants(getattr(thing, "func", None) or thing.afunc)))
        if isinstance(thing, BasePromptTemplate):
            return _whole(_under(given, shown_names(thing)))
        if isinstance(thing, (RunnablePassthrough, BaseOutputParser)):
            return given
        self._parts(thing, path)
        return {}

    def _parts(self, thing: Any, path: str) -> None:
        """Follow the parts of graphs, tool nodes and chains of langchain-classic."""
        if _is_a(thing, *_GRAPHS):
            for name, spec in getattr(thing, "builder", thing).nodes.items():
                self.flow(getattr(spec, "runnable", spec), {}, f"{path}.nodes[{name!r}]")
        elif _is_a(thing, *_TOOL_NODES):
            around = _behind(getattr(thing, "_wrap_tool_call", None))
            ours = next((m.results for m in around if _is_a(m, _MIDDLEWARE)), None)
            for name, tool in thing.tools_by_name.items():
                if ours is None or ours.passes(name, tool):
                    self._tool(tool, f"{path}.tools[{name!r}]")
        elif _is_a(thing, _COMBINING):
            if not _is_a(thing, _OUR_COMBINING):
                self._raw_prompt(thing, "the documents that it is given", path)
        elif _is_a(thing, _CHAINS):
            for name, value in vars(thing).items():
                if _is_a(value, _CHAINS):
                    self.flow(value, {}, f"{path}.{name}")

    def _tool(self, tool: BaseTool, path: str) -> Flow:
        if tool.args_schema is not RetrieverInput or isinstance(tool, RobustRetrieverTool):
            return {}
        self._report(
            "retrieving-tool",
            path,
            tool,
            f"the model reads what {tool.name!r} retrieves as it is",
            f"use create_robust_retriever_tool, or RobustRetrievalMiddleware(reader, tools=[{tool.name!r}])",
        )
        return {None: _named(path, tool)}

    def _raw_prompt(self, thing: object, source: str, path: str) -> None:
        problem = f"retrieved text (from {source}) is put into its prompt as it is"
        self._report("raw-prompt", path, thing, problem, f"answer with {_CHAIN} in place of the prompt and the model")

    def _report(self, kind: str, path: str, thing: object, problem: str, fix: str) -> None:
        self.findings.append(Finding(kind, path, type(thing).__name__, problem, fix))


def _under(given: Flow, names: Collection[object]) -> Flow:
    """Return the flow under these keys: all of it where the input as a whole is retrieved text."""
    return given if None in given else {name: source for name, source in given.items() if name in names}


def _whole(given: Flow) -> Flow:
    return {None: next(iter(given.values()))} if given else {}


def _constants(function: Any) -> Collection[object]:
    """Return the texts in a function's code, among them the keys that it reads."""
    if isinstance(function, operator.itemgetter):
        return tuple(function.__reduce__()[1])
    return getattr(getattr(function, "__code__", None), "co_consts", ())


def _is_a(value: object, *places: tuple[str, str]) -> bool:
    """True for an instance of one of these classes, whose modules the program may not have loaded."""
    found = (getattr(sys.modules.get(module), name, None) for module, name in places)
    return isinstance(value, tuple(kind for kind in found if kind is not None))


def _behind(thing: Any, depth: int = 0) -> Iterator[Any]:
    """Yield what a wrapper of tool calls holds, in closures and bound methods."""
    yield thing
    held = [cell.cell_contents for cell in getattr(thing, "__closure__", None) or ()]
    for inner in [getattr(thing, "__self__", None), *held, *(thing if isinstance(thing, (list, tuple)) else ())]:
        if inner is not None and depth < 6:
            yield from _behind(inner, depth + 1)


def _named(path: str, thing: object) -> str:
    return f"{type(thing).__name__} at {path or 'the top'}"
