"""Checks of arguments that many constructors share."""

from __future__ import annotations

from typing import TypeGuard


def is_whole_number(value: object, least: int, most: int | None = None) -> TypeGuard[int]:
    """Whether this is a whole number from `least` to `most`; True and False are not."""
    return isinstance(value, int) and not isinstance(value, bool) and least <= value and (most is None or value <= most)


def check_flag(**flags: object) -> None:
    """Check True or False, by the names of the arguments they were given as.

    Raises:
        TypeError: one of them is something else; the message names it.
    """
    for name, flag in flags.items():
        if not isinstance(flag, bool):
            raise TypeError(f"{name}={flag!r:.60} must be True or False")


def check_at_least(least: int, **numbers: object) -> None:
    """Check whole numbers, by the names of the arguments they were given as.

    Raises:
        ValueError: one of them is something else, or below `least`; the message names it.
    """
    for name, number in numbers.items():
        if not is_whole_number(number, least):
            raise ValueError(f"{name}={number!r} must be a whole number of at least {least}")
