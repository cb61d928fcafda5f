"""What a row of a run must look like before anything is drawn from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from robustrag_integrations.display import printable

_LARGEST = 1e15  # beyond it a number is no count, score or time of ours, and formatting it may fail


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


_MAYBE_TEXT, _MAYBE_NUMBER = Maybe(str), Maybe(float)

_GROUP = {
    "index": int,
    "passage_ids": [str],
    "sources": [str],
    "status": OneOf(("supports", "outvoted", "abstained", "failed")),
    "response": Null(str),
    "keywords": [str],
    "choice": Null(int),
    "margin": Null(float),
    "error": Null(str),
    "truncated": bool,
}
_EVIDENCE = {
    "counts": Maybe(Each(float)),
    "threshold": _MAYBE_NUMBER,
    "retained": Maybe([str]),
    "always_retained": Maybe([str]),
    "distinct_keywords": _MAYBE_NUMBER,
    "answering": _MAYBE_NUMBER,
    "corrupted_groups": _MAYBE_NUMBER,
    "untouched_groups": _MAYBE_NUMBER,
    "gaps": Maybe([float]),
    "indecisive_steps": _MAYBE_NUMBER,
    "tokens": Maybe([int]),
    "words": Maybe([str]),
    "rivals": Maybe([str]),
    "fallback_steps": Maybe([int]),
    "tree": Maybe([{"prefix": [int], "gap": float, "kind": str, "tokens": [int], "words": [str]}]),
}
_ANSWER = {
    "text": str,
    "radius": int,
    "abstained": bool,
    "query": str,
    "defense": str,
    "warnings": [str],
    "settings": {"eta": _MAYBE_NUMBER},
    "evidence": _EVIDENCE,
    "margin_unit": str,
    "model_calls": int,
    "groups": [_GROUP],
}
_CERTIFICATE = {
    "tau": Within(0, 100),
    "certified": bool,
    "corruption_size": int,
    "attack": str,
    "query": str,
    "references": [str],
    "metric": str,
    "defense": str,
    "responses": [{"text": Null(str), "score": float, "cause": str}],
    "complete": bool,
    "stopped": Null(str),
    "estimate": Null({"value": Within(0, 100), "sample_size": int}),
    "cases": int,
    "model_calls": int,
    "warnings": [str],
    "evidence": _EVIDENCE,
}
ROW = {
    "key": str,
    "dataset": str,
    "task": str,
    "question_id": str,
    "question": str,
    "answers": [str],
    "incorrect": _MAYBE_TEXT,
    "target": _MAYBE_TEXT,
    "top_k": Maybe(int),
    "model": str,
    "defense": str,
    "settings": dict,
    "setup": str,
    "attack": {
        "name": str,
        "mode": _MAYBE_TEXT,
        "rank": Maybe((str, int)),
        "corruption_size": Maybe(int),
        "seed": Maybe(int),
        "repeat": Maybe(int),
    },
    "passages": [{"id": _MAYBE_TEXT, "text": str, "source": _MAYBE_TEXT, "planted": Maybe(bool)}],
    "certificates": Maybe([_CERTIFICATE]),
    "error": Maybe({"type": str, "message": str}),
}
ATTACKED = {"rank": (str, int), "corruption_size": int}
ANSWERED = {
    "answer": _ANSWER,
    "scores": {
        "correct": Null(Within(0, 1)),
        "hijacked": Null(bool),
        "both": bool,
        "abstained": bool,
        "judge": Null(Within(0, 100)),
        "unreadable": Maybe(bool),
    },
    "cost": {"model_calls": _MAYBE_NUMBER, "prompt_tokens": _MAYBE_NUMBER, "completion_tokens": _MAYBE_NUMBER},
    "timing": {"seconds": Within(0, _LARGEST)},
}
_NAMES = {str: "a text", int: "a whole number", float: "a number", bool: "true or false", dict: "an object"}


def misfit_in_row(row: Any) -> str | None:
    """What is wrong with a row; None when everything that is drawn of it is there."""
    if problem := misfit(row, ROW):
        return problem
    if row["attack"]["name"] != "none" and (problem := misfit(row["attack"], ATTACKED, "attack")):
        return problem
    if row.get("error") is not None:
        return None
    if row["task"] != "long" and any(c["tau"] > 1 for c in row.get("certificates") or ()):
        return "certificates.tau must be at most 1"
    return misfit(row, ANSWERED)


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
        return isinstance(value, allowed) and not isinstance(value, bool) and abs(value) < _LARGEST
    return isinstance(value, kind)


def _wrong(place: str, wanted: str, value: Any) -> str:
    return f"{place} must be {wanted}, got {printable(repr(value)[:80], 40)}"
