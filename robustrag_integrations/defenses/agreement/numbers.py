"""Thresholds as users write them, held exactly."""

from __future__ import annotations

from fractions import Fraction

from robustrag_integrations.checks import is_whole_number


def exact_number(name: str, given: float | Fraction, allowed: str) -> Fraction:
    """The decimal number that was written: 0.3 is three tenths, so that no count is lost to a rounding error.

    Raises:
        ValueError: it is none; the message says what is `allowed`.
    """
    try:
        return given if isinstance(given, Fraction) else Fraction(str(given))
    except (ValueError, ZeroDivisionError):
        raise ValueError(f"{name}={given!r} must be a number in {allowed}") from None


def support_of(given: int) -> int:
    """`min_support` from user arguments.

    Raises:
        ValueError: it is no whole number of at least 1.
    """
    if not is_whole_number(given, 1):
        raise ValueError(f"min_support={given!r} must be a whole number of at least 1: how many groups must agree")
    return given
