"""Tools that the model's provider runs itself, such as web search: their results pass through no code of ours."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import FunctionType
from typing import Any

from langchain_robustrag.wiring.holdings import closure

_OF_THE_PROGRAM = frozenset({"function", "input_schema", "parameters", "args_schema"})
_RUN_BY_THE_PROGRAM = ("function", "custom")


def server_tools(tools: Any) -> Iterator[tuple[int, Mapping[str, Any], str]]:
    """Place, definition and name of each tool of a list that the provider runs; anything but a list holds none."""
    for at, spec in enumerate(tools if isinstance(tools, (list, tuple)) else ()):
        if _is_run_by_the_provider(spec):
            yield at, spec, str(spec.get("type") or next(iter(spec)))


def lists_held(function: Any) -> Iterator[Any]:
    """The lists in a function's closure, where an agent keeps its tools."""
    if isinstance(function, FunctionType):
        yield from (value for value in closure(function).values() if isinstance(value, (list, tuple)))


def _is_run_by_the_provider(spec: Any) -> bool:
    if not isinstance(spec, Mapping) or not spec or not all(isinstance(key, str) for key in spec):
        return False
    if spec.get("type") in _RUN_BY_THE_PROGRAM or not _OF_THE_PROGRAM.isdisjoint(spec):
        return False
    return isinstance(spec.get("type"), str) or all(isinstance(value, Mapping) for value in spec.values())
