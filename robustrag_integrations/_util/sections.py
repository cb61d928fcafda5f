"""Reads a hand-written mapping: each value with its type and range, each error with its key."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, TypeVar

from robustrag_integrations._util.checks import is_whole_number, nearest_of
from robustrag_integrations._util.display import printable

Value = TypeVar("Value")


def shown(value: Any) -> str:
    """Return a value for an error message, cut and made printable."""
    return printable(repr(value), 80)


class Section:
    """A part of a configuration.

    Args:
        given: its keys and values.
        path: where it stands, for messages; empty for the top.
        error: what is raised.
    """

    def __init__(self, given: Mapping[str, Any], path: str, error: type[Exception]) -> None:
        self._given, self._path, self._error = given, path, error

    def __contains__(self, key: str) -> bool:
        return key in self._given

    def __getitem__(self, key: str) -> Any:
        return self._given[key]

    def get(self, key: str) -> Any:
        """Return a value as it was given; None if it is missing."""
        return self._given.get(key)

    def wrong(self, message: str, key: str | None = None) -> Exception:
        """Return an error that names a key."""
        place = ".".join(filter(None, (self._path, key)))
        return self._error(f"{place}: {message}" if place else message)

    def unknown(self, key: str, value: Any, allowed: Iterable[str], more: str = "") -> Exception:
        """Return the error for an unknown name, with the nearest known one."""
        names = list(allowed)
        near = nearest_of(value, names) if isinstance(value, str) else None
        hint = f"; did you mean {near!r}?" if near else ""
        return self.wrong(f"{shown(value)} must be one of {', '.join(names)}{' ' + more if more else ''}{hint}", key)

    def known(self, keys: Collection[str], of: str = "") -> None:
        """Raise unless all keys are among these."""
        for key in self._given:
            if key not in keys:
                near = nearest_of(str(key), keys)
                hint = f"did you mean {near!r}? " if near else ""
                raise self.wrong(f"unknown key{of}; {hint}known are {', '.join(sorted(keys))}", printable(str(key), 60))

    def optional(self, key: str, read: Callable[[], Value]) -> Value | None:
        """Return what `read` reads; None where nothing is given."""
        return None if self._given.get(key) is None else read()

    def text(self, key: str) -> str:
        """Read a text that is not empty."""
        value = self._given.get(key)
        if not isinstance(value, str) or not value.strip():
            raise self.wrong(f"must be a text, got {shown(value)}", key)
        return value

    def flag(self, key: str) -> bool:
        """Read true or false."""
        value = self._given[key]
        if not isinstance(value, bool):
            raise self.wrong(f"must be true or false, got {shown(value)}", key)
        return value

    def number(self, key: str, smallest: int, largest: int) -> int:
        """Read a whole number of this range."""
        return self.whole_number(key, self._given[key], smallest, largest)

    def numbers(self, key: str, smallest: int, largest: int) -> tuple[int, ...]:
        """Read one or several whole numbers of this range."""
        return tuple(dict.fromkeys(self.whole_number(key, v, smallest, largest) for v in self.values(key)))

    def name(self, key: str, allowed: Collection[str]) -> str:
        """Read one of these names."""
        value = self._given.get(key)
        if not isinstance(value, str) or value not in allowed:
            raise self.unknown(key, value, allowed)
        return value

    def names(self, key: str, allowed: Collection[str], *, least: int = 0) -> tuple[str, ...]:
        """Read some of these names."""
        found = self.values(key, least=least)
        for value in found:
            if not isinstance(value, str) or value not in allowed:
                raise self.unknown(key, value, allowed)
        return tuple(dict.fromkeys(found))

    def values(self, key: str, *, least: int = 1) -> tuple[Any, ...]:
        """Read a value or a list of values."""
        value = self._given[key]
        listed = tuple(value) if isinstance(value, (list, tuple)) else (value,)
        if len(listed) < least:
            raise self.wrong("is an empty list; give at least one value", key)
        return listed

    def items(self, key: str, main: str) -> tuple[Section, ...]:
        """Read one or several parts, each a mapping, or a text as its main key."""
        parts = []
        several = self.values(key, least=0 if key == "attacks" else 1)
        for number, value in enumerate(several):
            place = ".".join(filter(None, (self._path, key + (f"[{number}]" if len(several) > 1 else ""))))
            if isinstance(value, str):
                value = {main: value}
            if not isinstance(value, Mapping):
                raise self._error(f"{place}: must be a text or keys and values with {main!r}, got {shown(value)}")
            if main not in value:
                raise self._error(f"{place}: {main!r} is missing")
            parts.append(Section(value, place, self._error))
        return tuple(parts)

    def whole_number(self, key: str, value: Any, smallest: int, largest: int) -> int:
        """Check that a key's value is a whole number of this range, and return it."""
        if not is_whole_number(value, smallest, largest):
            raise self.wrong(f"{shown(value)} must be a whole number from {smallest} to {largest:,}", key)
        return value
