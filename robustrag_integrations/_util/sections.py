"""Reads a hand-written mapping: errors name the key, and the nearest known one."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from robustrag_integrations._util.checks import is_whole_number, nearest_of
from robustrag_integrations._util.display import printable


def shown(value: Any) -> str:
    """Return a value for an error message, cut and made printable."""
    return printable(repr(value), 80)


class Section:
    """A part of a configuration.

    Args:
        given: its keys and values.
        path: its place, for messages; empty for the top.
        error: the exception to raise.
    """

    def __init__(self, given: Mapping[str, Any], path: str, error: type[Exception]) -> None:
        self.given, self._path, self._error = given, path, error

    def __contains__(self, key: str) -> bool:
        return key in self.given

    def __getitem__(self, key: str) -> Any:
        return self.given[key]

    def get(self, key: str) -> Any:
        """Return a value as it was given; None if it is missing."""
        return self.given.get(key)

    def wrong(self, message: str, key: str | None = None) -> Exception:
        """Return an error that names a key."""
        place = ".".join(filter(None, (self._path, key)))
        return self._error(f"{place}: {message}" if place else message)

    def known(self, keys: Collection[str], of: str = "") -> None:
        """Raise unless all keys are among these."""
        for key in self.given:
            if key not in keys:
                near = nearest_of(str(key), keys)
                hint = f"did you mean {near!r}? " if near else ""
                raise self.wrong(f"unknown key{of}; {hint}known are {', '.join(sorted(keys))}", printable(str(key), 60))

    def name(self, key: str, allowed: Collection[str]) -> str:
        """Read one of these names."""
        value = self.given.get(key)
        if not isinstance(value, str) or value not in allowed:
            near = nearest_of(value, allowed) if isinstance(value, str) else None
            hint = f"; did you mean {near!r}?" if near else ""
            raise self.wrong(f"{shown(value)} must be one of {', '.join(allowed)}{hint}", key)
        return value

    def number(self, key: str, smallest: int, largest: int) -> int:
        """Read a whole number of this range."""
        value = self.given[key]
        if not is_whole_number(value, smallest, largest):
            raise self.wrong(f"{shown(value)} must be a whole number from {smallest} to {largest:,}", key)
        return value
