"""Properties that are computed on first access."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar, cast

Value = TypeVar("Value")


class kept_property(Generic[Value]):
    """A property that an object computes once and keeps; for values that may be computed twice.

    `functools.cached_property` has one lock per class before Python 3.12: threads then wait for each other, and to take
    it costs more than most values.
    """

    def __init__(self, compute: Callable[[Any], Value]) -> None:
        self._compute = compute
        self.__doc__ = compute.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, instance: object, owner: type | None = None) -> Value:
        if instance is None:
            return cast(Value, self)
        value = instance.__dict__[self._name] = self._compute(instance)
        return value
