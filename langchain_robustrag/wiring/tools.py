"""Tools: whose results reach a model, and what the middleware makes of them."""

from __future__ import annotations

import builtins
import dis
import inspect
import typing
from collections.abc import Callable, Iterator
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any, Literal

from langchain_core.documents import Document
from langchain_core.messages import BaseMessage
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool

from langchain_robustrag.tool import RobustRetrieverTool
from langchain_robustrag.wiring.flows import CLEAN, Flow, Walk, named, taken
from langchain_robustrag.wiring.holdings import closure, code_names, only_written, reach
from langchain_robustrag.wiring.kinds import TOOL_NODES, is_model, is_ours, is_source, loaded

_PURE = frozenset(
    {"math", "cmath", "statistics", "datetime", "decimal", "fractions", "numbers", "random", "secrets", "operator"}
    | {"string", "textwrap", "unicodedata", "re", "json", "itertools", "functools", "collections", "uuid", "hashlib"}
    | {"zoneinfo", "calendar", "time", "typing", "typing_extensions", "enum", "dataclasses", "__future__"}
)  # modules that read no file and no network
_RISKY = frozenset(
    {"open", "eval", "exec", "compile", "__import__", "input", "getattr", "globals", "locals", "vars", "breakpoint"}
)
_LONGEST = 1000  # characters of a text that is part of the program
_NUMBERS = (int, float, bool, complex, type(None))

Verdict = Literal["safe", "retrieves", "unknown"]


def is_tool(thing: object) -> bool:
    """Whether it is a tool."""
    return isinstance(thing, BaseTool)


def tool_flow(walk: Walk, tool: BaseTool, given: Flow, path: str) -> Flow:
    """What a tool gives as a step of a chain."""
    verdict, source = judged(walk, tool, path)
    return CLEAN if verdict == "safe" else Flow(source)


def judged(walk: Walk, tool: BaseTool, path: str) -> tuple[Verdict, str]:
    """Whether a tool's results hold retrieved text, as far as can be seen, and where that comes from."""
    functions = _functions(tool)
    if walk.trusted(tool) or any(walk.trusted(f) for f in functions) or type(tool) is RobustRetrieverTool:
        return "safe", ""
    if functions and all(_returns_no_text(f) for f in functions):
        return "safe", ""
    code = functions or _methods(tool)
    ours, given_away, sources = False, False, []
    for at, value in reach(functions if functions else [dict(vars(tool)), _methods(tool)], walk.trusted):
        here = f"{path}{at}"
        if is_source(value):
            sources.append(named(here, value))
        elif isinstance(value, BaseTool) and not is_ours(value):
            if value is not tool and judged(walk, value, here)[0] != "safe":
                sources.append(named(here, value))
        elif isinstance(value, Runnable):
            gave = walk.flow(value, CLEAN, here)
            if any(taken(f, gave) for f in code):
                given_away = given_away or is_ours(value)
                sources.append(named(here, value))
        ours = ours or is_ours(value)
    if sources:
        return ("safe", "") if ours and not given_away else ("retrieves", sources[0])
    if functions and all(_self_contained(f, walk.trusted, frozenset()) for f in functions):
        return "safe", ""
    return "unknown", named(path, tool)


def report_tool(walk: Walk, tool: BaseTool, path: str, results: Any = None) -> None:
    """Report a tool whose results may reach a model as they are.

    Args:
        walk: the walk.
        tool: the tool.
        path: where it is.
        results: the rules of a `RobustRetrievalMiddleware` around it; None without one.
    """
    if walk.trusted(tool) or (results is not None and _covered(results, tool)):
        return
    verdict, source = judged(walk, tool, path)
    if verdict == "safe" and not (results is not None and tool.name in results.passed):
        return
    named_in = f"RobustRetrievalMiddleware(reader, tools=[{tool.name!r}])"
    if verdict == "retrieves":
        walk.report(
            "retrieving-tool",
            path,
            tool,
            f"the agent's model reads what {tool.name!r} retrieves (from {source}) as it is",
            f"use create_robust_retriever_tool in its place, or {named_in}",
        )
    else:
        walk.report(
            "unknown-tool",
            path,
            tool,
            f"what {tool.name!r} returns reaches the agent's model as it is, and where it comes from cannot be seen",
            f"if it retrieves, use {named_in}; if nobody else writes what it returns, pass it in trusted=",
        )


def _covered(results: Any, tool: BaseTool) -> bool:
    return bool(results.strict or results.retrieves(tool.name, tool) or results.passes(tool.name, tool))


def middleware_of(walk: Walk, node: Any) -> Any:
    """The rules of the `RobustRetrievalMiddleware` around a tool node's calls; None without one."""
    kinds = loaded(("langchain_robustrag.middleware", "RobustRetrievalMiddleware"))
    for _, value in reach([getattr(node, "_wrap_tool_call", None)], walk.trusted):
        if type(value) in kinds:
            return value.results  # type: ignore[attr-defined]
    return None


def tool_node_flow(walk: Walk, node: Any, given: Flow, path: str) -> Flow:
    """LangGraph's node of tools: each is reported, so that what they return counts as clean from there on."""
    results = middleware_of(walk, node)
    for name, tool in node.tools_by_name.items():
        report_tool(walk, tool, f"{path}.tools[{name!r}]", results)
    for function in (getattr(node, "_wrap_tool_call", None), getattr(node, "_awrap_tool_call", None)):
        for at, value in reach([function], walk.trusted):
            if is_source(value):
                walk.report(
                    "retrieving-middleware",
                    f"{path}{at}",
                    value,
                    "what is around the tools' calls retrieves text itself, which is not isolated",
                    "retrieve in a tool of create_robust_retriever_tool",
                )
    return CLEAN


def is_tool_node(thing: object) -> bool:
    """Whether it is LangGraph's node of tools."""
    return isinstance(thing, loaded(*TOOL_NODES))


def _functions(tool: BaseTool) -> list[Any]:
    found = [getattr(tool, "func", None), getattr(tool, "coroutine", None)]
    return [f for f in found if f is not None]


def _methods(tool: BaseTool) -> list[Any]:
    return [getattr(type(tool), name) for name in ("_run", "_arun")]


def _self_contained(function: Any, trusted: Callable[[object], bool], seen: frozenset[int]) -> bool:
    """Whether a function can return nothing but what its own code and its arguments say."""
    if trusted(function) or id(function) in seen:
        return True
    if not isinstance(function, FunctionType):
        return False
    defaults = [*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()]
    held = [*_globals(function), *defaults, *closure(function).values()]
    seen = seen | {id(function)}
    names, _ = code_names(function)
    read = [value for value in held if not only_written(value, names)]
    return not _imports(function.__code__) and all(_harmless(value, trusted, seen) for value in read)


def _harmless(value: Any, trusted: Callable[[object], bool], seen: frozenset[int]) -> bool:
    if trusted(value) or isinstance(value, _NUMBERS) or is_ours(value) or is_model(value):
        return True
    if isinstance(value, type) and issubclass(value, (Document, BaseMessage, *loaded(("langgraph.types", "Command")))):
        return True
    if isinstance(value, str):
        return len(value) <= _LONGEST
    if isinstance(value, ModuleType):
        return value.__name__.partition(".")[0] in _PURE
    if isinstance(value, BuiltinFunctionType) or (isinstance(value, type) and value.__module__ == "builtins"):
        return getattr(value, "__name__", "") not in _RISKY
    if isinstance(value, FunctionType):
        return value.__module__.partition(".")[0] in _PURE or _self_contained(value, trusted, seen)
    if isinstance(value, (list, tuple, set, frozenset)):
        return all(isinstance(item, _NUMBERS) for item in value)
    if isinstance(value, dict):
        return all(isinstance(item, _NUMBERS) for item in value.values())
    if isinstance(value, Runnable) and not isinstance(value, BaseTool):
        return not is_source(value)  # what it gives has been looked at
    module = value.__module__ if isinstance(value, type) else type(value).__module__
    return module.partition(".")[0] in _PURE


def _returns_no_text(function: Any) -> bool:
    try:
        hint = typing.get_type_hints(function).get("return", inspect.Parameter.empty)
    except Exception:
        return False
    return hint in _NUMBERS or (typing.get_args(hint) != () and all(a in _NUMBERS for a in typing.get_args(hint)))


def _globals(function: FunctionType) -> Iterator[Any]:
    for name in _global_names(function.__code__):
        if name in function.__globals__:
            yield function.__globals__[name]
        elif hasattr(builtins, name):
            yield getattr(builtins, name)


def _global_names(code: CodeType) -> set[str]:
    names = {str(i.argval) for i in dis.get_instructions(code) if i.opname in ("LOAD_GLOBAL", "LOAD_NAME")}
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            names |= _global_names(constant)
    return names


def _imports(code: CodeType) -> bool:
    """Whether code imports anything that may fetch text."""
    found = (str(i.argval).partition(".")[0] for i in dis.get_instructions(code) if i.opname == "IMPORT_NAME")
    inner = (constant for constant in code.co_consts if isinstance(constant, CodeType))
    return any(name not in _PURE for name in found) or any(map(_imports, inner))
