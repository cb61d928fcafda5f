"""Checking JSON from a file that is not trusted against a shape: which keys, which types, which ranges."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from robustrag_integrations.display import printable

LARGEST = 1e15  # a larger number is not a count, a score or a time of ours, and formatting it may fail


@dataclass(frozen=True)
class Maybe:
    """A value that may be null or missing."""

    shape: Any


@dataclass(frozen=True)
class Null:
    """A value that may be null, and must be there."""

    shape: Any


@dataclass(frozen=True)
class Each:
    """A mapping from texts to values of one shape."""

    shape: Any


@dataclass(frozen=True)
class Within:
    """A number of this range."""

    low: float
    high: float


@dataclass(frozen=True)
class OneOf:
    """One of these texts."""

    texts: tuple[str, ...]


_NAMES = {str: "a text", int: "a whole number", float: "a number", bool: "true or false", dict: "an object"}


def misfit(value: Any, shape: Any, place: str = "") -> str | None:
    """What is wrong with a value, named by its place; None when it fits."""
    if isinstance(shape, (Maybe, Null)):
        return None if value is None else misfit(value, shape.shape, place)
    if isinstance(shape, Mapping):
        return _misfit_in_object(value, shape, place)
    if isinstance(shape, list):
        if not isinstance(value, list):
            return _wrong(place, "a list", value)
        return next(filter(None, (misfit(v, shape[0], f"{place}[{i}]") for i, v in enumerate(value))), None)
    if isinstance(shape, Each):
        if not isinstance(value, dict):
            return _wrong(place, "an object", value)
        return next(filter(None, (misfit(v, shape.shape, place) for v in value.values())), None)
    if isinstance(shape, Within):
        fits = _is(value, float) and shape.low <= value <= shape.high
        return None if fits else _wrong(place, f"a number from {shape.low:g} to {shape.high:g}", value)
    if isinstance(shape, OneOf):
        return None if value in shape.texts else _wrong(place, f"one of {', '.join(shape.texts)}", value)
    if isinstance(shape, tuple):
        problems = [misfit(value, s, place) for s in shape]
        return None if None in problems else problems[0]
    return None if _is(value, shape) else _wrong(place, _NAMES[shape], value)


def _misfit_in_object(value: Any, shape: Mapping[str, Any], place: str) -> str | None:
    if not isinstance(value, dict):
        return _wrong(place or "the row", "an object", value)
    for key, inner in shape.items():
        at = f"{place}.{key}" if place else key
        if key not in value and not isinstance(inner, Maybe):
            return f"there is no {at!r}"
        if problem := misfit(value.get(key), inner, at):
            return problem
    return None


def _is(value: Any, kind: type) -> bool:
    if kind in (int, float):
        allowed = (int, float) if kind is float else int
        return isinstance(value, allowed) and not isinstance(value, bool) and abs(value) < LARGEST
    return isinstance(value, kind)


def _wrong(place: str, wanted: str, value: Any) -> str:
    return f"{place} must be {wanted}, got {printable(repr(value)[:80], 40)}"
