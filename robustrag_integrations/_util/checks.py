"""Checks of arguments that many constructors share."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from copy import copy
from types import MappingProxyType
from typing import Any, TypeGuard, TypeVar
from unicodedata import bidirectional, category

T = TypeVar("T")

MOST = 2**53  # no larger number counts anything here, and floats hold every one up to it
_DIRECTIONS = frozenset({"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"})  # may reverse what is read


def is_whole_number(value: object, least: int, most: int = MOST) -> TypeGuard[int]:
    """True for a whole number from `least` to `most`; True and False are not whole numbers."""
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most


def unchecked(known: T, **values: Any) -> T:
    """Return a copy of a frozen object with other values; nothing is checked again."""
    made = copy(known)
    vars(made).update(values)
    return made


def check_flag(**flags: object) -> None:
    """Check that arguments, given by name, are True or False; raise TypeError."""
    for name, flag in flags.items():
        if not isinstance(flag, bool):
            raise TypeError(f"{name}={flag!r:.60} must be True or False")


def check_text(**texts: object) -> None:
    """Check that arguments, given by name, are texts that show as they are written; raise TypeError or ValueError."""
    for name, text in texts.items():
        if not isinstance(text, str):
            raise TypeError(f"{name}={text!r:.60} must be a text")
        if not text.strip():
            raise ValueError(f"{name} is empty; write a text")
        for character in text:
            moves = category(character) in ("Cc", "Cs", "Zl", "Zp") or bidirectional(character) in _DIRECTIONS
            if moves and character != "\n":
                raise ValueError(f"{name}={text!r:.60} holds the control character {character!r}; leave it out")


def check_at_least(least: int, **numbers: object) -> None:
    """Check that arguments, given by name, are whole numbers from a minimum to `MOST`; raise ValueError."""
    for name, number in numbers.items():
        if not is_whole_number(number, least):
            up_to = " and at most 2**53" if isinstance(number, int) and number > MOST else ""
            raise ValueError(f"{name}={number!r:.60} must be a whole number of at least {least}{up_to}")


def nearest_of(name: str, names: Collection[str], least: float = 0.6) -> str | None:
    """Return the name that was probably meant by a misspelt one; None if none is as like it (0 to 1)."""
    from difflib import get_close_matches

    return next(iter(get_close_matches(name, names, 1, least)), None)


def refuse_misspelt(names: Collection[str], own: Collection[str], others: Collection[str]) -> None:
    """Raise TypeError for a name that is nearer to an argument of a function's own than to those that it passes on."""
    for name in names:
        if (near := nearest_of(name, [*own, *others])) in own:
            raise TypeError(f"unknown argument {name!r}; did you mean {near}?")


def refuse_unknown(
    names: Collection[str],
    known: Collection[str],
    taker: str,
    *,
    others: Collection[str] = (),
    instead: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """Raise TypeError for unknown arguments of a `taker`; others may have been meant, and `instead` names fixes."""
    if unknown := sorted(set(names) - set(known)):
        near = nearest_of(unknown[0], sorted({*known, *others}))
        hint = f"{taker} takes {', '.join(known)}" if near in (None, unknown[0]) else f"did you mean {near}?"
        plural = "s" if len(unknown) > 1 else ""
        raise TypeError(f"unknown argument{plural} {', '.join(map(repr, unknown))}; {instead.get(unknown[0], hint)}")
