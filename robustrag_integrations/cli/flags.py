"""Command-line flags from the fields of a configuration, which declare name, type, range, choices and help."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel

from robustrag_integrations.cli.arguments import some_text, whole_number
from robustrag_integrations.evaluation.run.config import Whole

_OTHERS = {"data": "--data"}


def add_fields(group: Any, model: type[BaseModel], *names: str) -> None:
    """Add a flag for each of these fields; a flag that is not typed is None."""
    for name in names:
        add_field(group, model, name)


def add_field(group: Any, model: type[BaseModel], name: str, flag: str | None = None, **more: Any) -> None:
    """Add a flag for a field; `more` overrides what follows from the field."""
    field = model.model_fields[name]
    kinds = list(_unwrapped(field.annotation, field.metadata))
    several = any(get_origin(kind) is tuple for kind in kinds)
    whole = next((kind for kind in kinds if isinstance(kind, Whole)), None)
    choices = next((get_args(kind) for kind in kinds if get_origin(kind) is Literal), None)
    flag = flag or _OTHERS.get(name) or f"--{(name.removesuffix('s') if several else name).replace('_', '-')}"
    given: dict[str, Any] = {"dest": name, "default": None, "help": field.description}
    if bool in kinds:
        given["action"] = "store_true"
    else:
        metavar = "N" if whole else flag.removeprefix("--").replace("-", "_").upper()
        given |= {"metavar": metavar, **({"nargs": "+"} if several else {})}
        given |= {"choices": choices} if choices else {"type": _reader(whole)}
    group.add_argument(flag, **{**given, **more})


def given_fields(args: argparse.Namespace, names: Iterable[str]) -> dict[str, Any]:
    """Return those of these fields that were typed."""
    return {name: value for name in names if (value := getattr(args, name, None)) is not None}


def _reader(whole: Whole | None) -> Any:
    if whole is not None:
        return whole_number(whole.least, whole.most)
    return some_text


def _unwrapped(annotation: Any, metadata: Iterable[Any] = ()) -> Iterator[Any]:
    """Yield a type, the types inside it, and all marks on the way."""
    yield from metadata
    yield annotation
    origin = get_origin(annotation)
    if origin is Annotated:
        inner, *marks = get_args(annotation)
        yield from _unwrapped(inner, marks)
    elif origin in (Union, UnionType, tuple):
        for inner in get_args(annotation):
            if inner not in (Ellipsis, type(None)):
                yield from _unwrapped(inner)
