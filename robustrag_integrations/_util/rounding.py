"""Rounds numbers for tables: halves are rounded up, as on paper."""

from __future__ import annotations

import math
from decimal import ROUND_HALF_UP, Context, Decimal

_CONTEXT = Context(prec=400)  # digits of the largest float, and those after the point


def decimals(value: float, digits: int = 0, scale: int = 1) -> str:
    """Format a number with this many digits after the point; 12.5 becomes 13, where `format` makes 12 of it.

    Args:
        value: what 12 significant digits tell of it; the error of a sum of floats rounds nothing down. What is no
            finite number is `inf` or `nan`.
        digits: behind the point.
        scale: a factor that is applied first: 100 for percent.
    """
    if not math.isfinite(value):
        return str(float(value))
    exact = Decimal(f"{value:.12g}") * scale
    shown = f"{exact.quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP, _CONTEXT):f}"
    return shown[1:] if shown.startswith("-") and not shown.strip("-0.") else shown


def significant(value: float, figures: int = 3) -> str:
    """Format a number with this many significant digits, without trailing zeros and without an exponent.

    Args:
        value: finite; what 12 significant digits tell of it.
        figures: number of digits that count. All of a whole part are shown: 12345 stays 12345.
    """
    exact = Decimal(f"{value:.12g}")
    shown = decimals(value, max(figures - 1 - exact.adjusted(), 0) if exact else 0)
    return shown.rstrip("0").rstrip(".") if "." in shown else shown
