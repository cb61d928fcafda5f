"""Places on an axis that are round numbers."""

from __future__ import annotations

import math
from collections.abc import Iterable


def round_ticks(low: float, high: float, *, most: int = 6, whole: bool = False) -> tuple[float, ...]:
    """Round numbers from at or below `low` to at or above `high`, 1, 2 or 5 times a power of ten apart.

    Args:
        low: the lowest value that is drawn, at least 0.
        high: the highest.
        most: at most how many; at least 3.
        whole: whether nothing is between whole numbers.
    """
    if high - low <= max(1e-9 * high, 1e-12):
        low, high = 0.0, high if high > 1e-12 else 1.0
    power = math.floor(math.log10((high - low) / most))
    power = max(power, 0) if whole else power
    sizes = (factor * 10.0**exponent for exponent in range(power, power + 3) for factor in (1, 2, 5))
    for step in sizes:
        first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
        if last - first < most:
            digits = max(0, -math.floor(math.log10(step)))
            return tuple(round(i * step, digits) for i in range(first, max(last, first + 1) + 1))
    raise ValueError(f"low={low!r} and high={high!r} must be finite")


def ticks_at(places: Iterable[float], *, most: int = 8) -> tuple[float, ...]:
    """The places of points themselves where they are few and short to write, else round numbers among them."""
    at = sorted(set(places))
    if len(at) <= most and all(len(f"{x:g}") <= 4 for x in at):
        return tuple(at)
    whole = all(float(x).is_integer() for x in at)
    return tuple(x for x in round_ticks(at[0], at[-1], most=most, whole=whole) if at[0] <= x <= at[-1]) or tuple(at[:1])
