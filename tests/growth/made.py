"""Arguments full of hostile text, made from the annotations of whatever takes them."""

from __future__ import annotations

import collections.abc
import dataclasses
import functools
import inspect
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tests.growth import known

_SEQUENCES = (list, tuple, set, frozenset, *(getattr(collections.abc, name) for name in (
    "Sequence", "Iterable", "Iterator", "Collection", "Set", "Container", "AsyncIterator", "MutableSequence"
)))  # fmt: skip
_MAPPINGS = (dict, collections.abc.Mapping, collections.abc.MutableMapping)
_NAMES = ("text", "source", "url", "title", "id", "content")  # of entries that somebody reads


class Unknown(TypeError):
    """How a value of this type is made is not known here."""


class LeftOut(TypeError):
    """What needs a value of this type is left out (`known.TYPES_LEFT_OUT`)."""


@dataclass(frozen=True)
class Given:
    """In place of a type, the name of a parameter that users set (`known.GIVEN`)."""

    parameter: str


@dataclass(frozen=True)
class Matter:
    """A hostile text of about this many characters; with `many`, as many short texts as come to that.

    It begins with the number, so that no call finds kept what another one has found of its text.
    """

    unit: str
    size: int
    many: bool = False
    number: int = 0

    @property
    def text(self) -> str:
        """One text."""
        return (f"{self.number} " * (self.number > 0) + self.unit * (self.size // len(self.unit) + 1))[: self.size]

    def each(self, make: Callable[[Matter], Any]) -> list[Any]:
        """Values made of one long text, or of many short ones that differ."""
        if not self.many:
            return [make(self)]
        first = self.number * 100_000
        numbered = (f"{self.unit} {first + n}" for n in range(max(1, self.size // (len(self.unit) + 6))))
        return [make(Matter(text, len(text))) for text in numbered]


def small() -> Matter:
    """A few harmless words."""
    return Matter("Anna Lind runs mill 12. ", 24)


def reads_text(kind: Any, within: tuple[Any, ...] = ()) -> bool:
    """True if values of this type may hold text. Unknown if nobody has said."""
    if isinstance(kind, Given):
        return False
    kind, inner = _parts(kind)
    if kind in (str, bytes, Any, object) or kind in _MAPPINGS or isinstance(kind, typing.TypeVar):
        return True
    if _name(kind) in known.TYPES_LEFT_OUT:
        raise LeftOut(_name(kind))
    if kind in known.WITHOUT_TEXT or kind in (type, typing.Literal) or kind in within:
        return False
    if _name(kind) in known.MADE:
        return True
    if kind in (*_SEQUENCES, typing.Union):
        return any(reads_text(each, within) for each in inner if each is not Ellipsis) if inner else True
    if kind is collections.abc.Callable:
        return False
    if dataclasses.is_dataclass(kind):
        return any(reads_text(field, (*within, kind)) for _, field, _ in _fields(kind))
    raise Unknown(f"{kind}")


def value(kind: Any, matter: Matter) -> Any:
    """A value of this type that holds the text wherever it can."""
    if isinstance(kind, Given):
        return known.GIVEN[kind.parameter]
    kind, inner = _parts(kind)
    if _name(kind) in known.MADE:
        return known.MADE[_name(kind)](matter)
    if kind in known.WITHOUT_TEXT:
        return known.WITHOUT_TEXT[kind]
    if kind is str or isinstance(kind, typing.TypeVar):
        return matter.text
    if kind is bytes:
        return matter.text.encode("utf-8", "surrogatepass")
    if kind in (Any, object):
        if not matter.many:
            return dict.fromkeys(_NAMES, matter.text)
        return matter.each(lambda one: dict.fromkeys(_NAMES, one.text))
    if kind is typing.Literal:
        return inner[0]
    if kind is typing.Union:
        return value(next((k for k in inner if k is not type(None) and reads_text(k)), inner[0]), matter)
    if kind in _MAPPINGS:
        of = inner[1] if len(inner) > 1 else Any
        made = {name: value(of, matter) for name in _NAMES} if not matter.many else {}
        return {**made, **{one.text: value(of, one) for one in matter.each(lambda one: one)}}
    if kind in _SEQUENCES:
        if kind is tuple and inner and Ellipsis not in inner:
            return tuple(value(each, matter) for each in inner)
        made = matter.each(lambda one: value(inner[0] if inner else str, one))
        return kind(made) if isinstance(kind, type) and kind in (tuple, set, frozenset) else made
    if kind is collections.abc.Callable:
        return functools.partial(_constant, inner[-1] if inner else str, matter)
    if kind is type:
        return inner[0] if inner and isinstance(inner[0], type) else str
    if dataclasses.is_dataclass(kind):
        return _dataclass(kind, matter)
    raise Unknown(f"{kind}")


@functools.cache
def _dataclass(kind: Any, matter: Matter) -> Any:
    return kind(**{name: value(hint, matter) for name, hint, needed in _fields(kind) if needed or reads_text(hint)})


def forget() -> None:
    """Make values anew from now on: those that are kept hold what calls have computed of them."""
    _dataclass.cache_clear()


def _constant(kind: Any, matter: Matter, *given: Any, **named: Any) -> Any:
    return value(kind, matter)


def _parts(kind: Any) -> tuple[Any, tuple[Any, ...]]:
    while isinstance(kind, typing.NewType) or hasattr(kind, "__value__"):
        kind = getattr(kind, "__supertype__", None) or kind.__value__
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Annotated, typing.ClassVar):
        return _parts(inner[0])
    if origin is types.UnionType:
        return typing.Union, inner
    return (kind, ()) if origin is None else (origin, inner)


def _name(kind: Any) -> str:
    """The name of a type in `known`: of a class of other packages, with the package where ours has one like it."""
    name: str = getattr(kind, "__name__", "").partition("[")[0]
    full = f"{getattr(kind, '__module__', '').partition('.')[0]}.{name}"
    return full if full in known.MADE else name


def _hints(thing: Any) -> dict[str, Any]:
    told = thing.__init__ if inspect.isclass(thing) and not dataclasses.is_dataclass(thing) else thing
    try:
        return typing.get_type_hints(told, localns=known.NAMES)
    except Exception as error:  # names that only type checkers import
        raise Unknown(str(error)) from None


@functools.cache
def _fields(kind: Any) -> list[tuple[str, Any, bool]]:
    hints = _hints(kind)
    missing = dataclasses.MISSING
    return [
        (f.name, hints[f.name], f.default is missing and f.default_factory is missing)
        for f in dataclasses.fields(kind)
        if f.init
    ]


def parameters(function: Any) -> Mapping[str, tuple[Any, bool]]:
    """The annotation of each parameter, and whether it must be given."""
    hints = _hints(function)
    found = {}
    try:
        taken = inspect.signature(function).parameters
    except ValueError as error:
        raise Unknown(str(error)) from None
    for name, one in taken.items():
        if one.kind in (one.VAR_KEYWORD,) or name in ("self", "cls"):
            continue
        kind = hints.get(name, Any)
        if one.kind is one.VAR_POSITIONAL:
            kind = tuple[kind, ...]  # type: ignore[valid-type]
        if name in known.GIVEN:
            kind = Given(name)
        found[name] = kind, one.default is one.empty and one.kind is not one.VAR_POSITIONAL
    return found
