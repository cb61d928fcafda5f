"""Checks of arguments that many constructors share."""

from __future__ import annotations


def check_at_least_one(**numbers: object) -> None:
    """Whole numbers of at least 1, by the names of the arguments they were given as.

    Raises:
        ValueError: one of them is something else; the message names it.
    """
    for name, number in numbers.items():
        if isinstance(number, bool) or not isinstance(number, int) or number < 1:
            raise ValueError(f"{name}={number!r} must be a whole number of at least 1")
