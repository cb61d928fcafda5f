"""Checks of arguments that many constructors share."""

from __future__ import annotations

from collections.abc import Mapping


def check_not_negative(**numbers: object) -> None:
    """Whole numbers of at least 0, by the names of the arguments they were given as.

    Raises:
        ValueError: one of them is something else; the message names it.
    """
    _check_whole(0, numbers)


def check_at_least_one(**numbers: object) -> None:
    """Whole numbers of at least 1, by the names of the arguments they were given as.

    Raises:
        ValueError: one of them is something else; the message names it.
    """
    _check_whole(1, numbers)


def _check_whole(least: int, numbers: Mapping[str, object]) -> None:
    for name, number in numbers.items():
        if isinstance(number, bool) or not isinstance(number, int) or number < least:
            raise ValueError(f"{name}={number!r} must be a whole number of at least {least}")
