"""Tools, agents, workflows and retrievers: what they hold, and who reads what they return."""

from __future__ import annotations

from collections.abc import Iterator
from inspect import getclosurevars, unwrap
from types import FunctionType, MethodType
from typing import Any

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.retrievers import QueryFusionRetriever, RecursiveRetriever, RouterRetriever, TransformRetriever
from llama_index.core.tools import BaseTool, FunctionTool, RetrieverTool
from llama_index.core.workflow import Workflow

from llamaindex_robustrag.diverse import DiverseRetriever
from llamaindex_robustrag.wiring.walk import ENGINE, HOLDERS, KNOWN, Walk
from robustrag_integrations.undefended import Finding


def retriever_tool(walk: Walk, thing: RetrieverTool, path: str) -> Iterator[Finding]:
    """The agent reads what was retrieved."""
    yield Finding(
        "retriever-tool",
        path,
        type(thing).__name__,
        "the agent's model reads the retrieved texts as they are; nothing is aggregated",
        f"use QueryEngineTool.from_defaults({ENGINE})",
    )


def function_tool(walk: Walk, thing: FunctionTool, path: str) -> Iterator[Finding]:
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
                f"use QueryEngineTool.from_defaults({ENGINE}) in its place",
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
        if not isinstance(function.__self__, KNOWN):
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
    return isinstance(value, HOLDERS) or hasattr(type(value), "as_retriever")


def agent(walk: Walk, thing: Any, path: str) -> Iterator[Finding]:
    """Its tools, as far as they are known."""
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


def retriever(walk: Walk, thing: BaseRetriever, path: str) -> Iterator[Finding]:
    """Some retrievers ask engines, whose answers become nodes."""
    if isinstance(thing, RecursiveRetriever):
        yield from walk.parts(thing, path, "_query_engine_dict", "_retrievers_dict")
    elif isinstance(thing, (QueryFusionRetriever, RouterRetriever)):
        yield from walk.parts(thing, path, "_retrievers")
    elif isinstance(thing, (DiverseRetriever, TransformRetriever)):
        yield from walk.parts(thing, path, "_retriever")


def workflow(walk: Walk, thing: Workflow, path: str) -> Iterator[Finding]:
    """What it holds."""
    for name, value in vars(thing).items():
        if isinstance(value, BaseRetriever):
            yield _unknown_finding(thing, f"{path}.{name}", "a workflow with a retriever of its own")
        elif isinstance(value, (*KNOWN, list, tuple, dict)):
            yield from walk.visit(value, f"{path}.{name}")


def unknown(walk: Walk, thing: object, path: str) -> Iterator[Finding]:
    """Something that is not known to isolate documents."""
    yield _unknown_finding(thing, path, "what it does with retrieved text is not known")


def _unknown_finding(thing: object, path: str, problem: str) -> Finding:
    return Finding(
        "unknown",
        path,
        type(thing).__name__,
        problem,
        f"answer with {ENGINE}, or, if it isolates documents itself, pass trusted=[{type(thing).__name__}]",
    )


def nothing(walk: Walk, thing: object, path: str) -> Iterator[Finding]:
    """Nothing to say."""
    return iter(())
