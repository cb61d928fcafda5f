"""Functions of the user's that a baseline asks: what judges two answers, what embeds texts, what finds an injection."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from robustrag_integrations.plugins import load_object


def function_of(name: str, given: Any, default: Callable[..., Any]) -> Callable[..., Any]:
    """The function itself, the one of a name (`module:function`, `file.py:function`), or the default for None.

    Raises:
        ValueError: it cannot be imported.
        TypeError: it is no function.
    """
    if given is None:
        return default
    if isinstance(given, str):
        try:
            found = load_object(given)
        except ValueError as error:
            raise ValueError(f"{name}={given!r:.200}: {error}") from error
    else:
        found = given
    if not callable(found):
        raise TypeError(f"{name} must be a function or module:function, got {type(found).__name__}")
    function: Callable[..., Any] = found
    return function


def name_of(function: Callable[..., Any]) -> str:
    """A function in an answer's settings."""
    kind = function if hasattr(function, "__qualname__") else type(function)
    return f"{kind.__module__}:{kind.__qualname__}"


def probability(name: str, value: Any) -> float:
    """What a function of the user's gave, as a number in [0, 1].

    Raises:
        ValueError: it is no such number.
    """
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not 0 <= number <= 1:
        raise ValueError(f"{name} gave {value!r:.60}; it must give True, False or a probability in [0, 1]")
    return number
