"""The words and names in a function's code, and in that of the helpers it calls."""

from __future__ import annotations

from types import FunctionType, MethodType
from typing import Any

from langchain_robustrag.wiring.holdings import closure, code_names, is_library


def all_words(function: Any, _seen: frozenset[int] = frozenset()) -> tuple[frozenset[str], frozenset[str]]:
    """The names (attributes and globals) and the words (string constants); a key that is read is among them."""
    names, words = code_names(function)
    for helper in _helpers(function, names):
        if id(helper) not in _seen and len(_seen) < 100:
            more, other = all_words(helper, _seen | {id(function), id(helper)})
            names, words = names | more, words | other
    return names, words


def _helpers(function: Any, names: frozenset[str]) -> list[Any]:
    held: list[Any] = []
    if isinstance(function, MethodType):
        held = [getattr(type(function.__self__), name, None) for name in names]
        function = function.__func__
    if isinstance(function, FunctionType) and not is_library(function):
        held += [function.__globals__.get(name) for name in names]
        held += closure(function).values()
    return [f for f in held if isinstance(f, (FunctionType, MethodType)) and not is_library(f)]
