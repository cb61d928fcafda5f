"""Thresholds as users write them, kept exact."""

from __future__ import annotations

from fractions import Fraction


def exact_number(given: float | Fraction) -> Fraction:
    """Return the decimal number as written: 0.3 is three tenths, so that no count is lost to a rounding error."""
    return given if isinstance(given, Fraction) else Fraction(str(given))


def among_counts(share: Fraction, most: int) -> Fraction:
    """A fraction that no two counts tell from a share: a > share * b exactly where a is more than that part of b.

    The share of a float such as 1 / 3 has a denominator of 10^16, whose products with counts fit no machine word. So
    one of small numbers takes its place: between it and the share there is no fraction of two such counts.

    Args:
        share: in [0, 1).
        most: the largest count, at least 1.

    Returns:
        The share itself if its denominator is no more than 2 * most; else another one of which that is true.
    """
    if share.denominator <= 2 * most:
        return share
    near = share.limit_denominator(most)
    a, b = near.numerator, near.denominator
    # The next fraction c / d of counts on the side of the share: b * c - a * d is 1 above it, -1 below it.
    side = 1 if near < share else -1
    d = most - (most + side * pow(a, -1, b)) % b
    c = (a * d + side) // b
    return Fraction(a + c, b + d)
