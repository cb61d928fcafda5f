"""A function with what is known of its arguments, and the static look-up of attributes: nothing is run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from types import FunctionType, MethodType, ModuleType

from llamaindex_robustrag.wiring.identity import attributes, function_in, is_a


@dataclass(frozen=True, eq=False)
class Bound:
    """A function and the arguments that are known before it runs.

    Attributes:
        function: the function.
        given: arguments by parameter name, `self` among them; defaults included.
        result: where all that becomes of its result is known, and no text of it is read: the methods that write to it;
            None where its result may be read.
    """

    function: FunctionType
    given: Mapping[str, object] = field(default_factory=dict)
    result: frozenset[str] | None = None

    @property
    def key(self) -> tuple[object, ...]:
        """The same for the same function with the same arguments."""
        return (id(self.function), self.result, *sorted((name, id(value)) for name, value in self.given.items()))


def bound_of(thing: object) -> Bound | None:
    """A function, method or partial with its arguments; None if it is none of these."""
    if is_a(thing, Bound):
        return thing
    if type(thing) is partial:
        inner = bound_of(thing.func)
        if inner is None:
            return None
        free = [name for name in parameters(inner.function) if name not in inner.given or name in _defaults(inner)]
        given = {**dict(zip(free, thing.args, strict=False)), **thing.keywords}
        return Bound(inner.function, {**inner.given, **given}) if len(thing.args) <= len(free) else None
    if is_a(thing, MethodType) and is_a(thing.__func__, FunctionType):
        return with_self(thing.__func__, thing.__self__)
    return Bound(thing, defaults(thing)) if is_a(thing, FunctionType) else None


def with_self(function: FunctionType, thing: object) -> Bound:
    """A method of a thing."""
    names = parameters(function)
    return Bound(function, {**defaults(function), **({names[0]: thing} if names else {})})


def parameters(function: FunctionType) -> tuple[str, ...]:
    """The names of a function's positional parameters."""
    return function.__code__.co_varnames[: function.__code__.co_argcount]


def defaults(function: FunctionType) -> dict[str, object]:
    """What a function's parameters are if they are not given."""
    values = function.__defaults__ or ()
    names = parameters(function)
    return {**dict(zip(names[len(names) - len(values) :], values, strict=True)), **(function.__kwdefaults__ or {})}


def _defaults(bound: Bound) -> dict[str, object]:
    found = defaults(bound.function)
    return {name: value for name, value in found.items() if bound.given.get(name) is value}


def member(thing: object, name: str) -> object | None:
    """An attribute as it stands; a property or method as a `Bound`; None if it cannot be known without running code."""
    if is_a(thing, Bound):
        return thing.function.__dict__.get(name)
    if is_a(thing, ModuleType):
        return thing.__dict__.get(name)
    kind = thing if is_a(thing, type) else type(thing)
    in_class = next((base.__dict__[name] for base in kind.__mro__ if name in base.__dict__), None)
    if is_a(thing, type):
        function = function_in(in_class)
        if is_a(in_class, classmethod) and function is not None:
            return with_self(function, thing)
        return Bound(function, defaults(function)) if function is not None else in_class
    if not is_a(in_class, property) and name in (own := attributes(thing)):
        return own[name]
    function = function_in(in_class)
    if function is None:
        return None if type(in_class).__name__ == "member_descriptor" else in_class
    if is_a(in_class, staticmethod):
        return Bound(function, defaults(function))
    return with_self(function, kind if is_a(in_class, classmethod) else thing)
