"""Numbers as tables show them: halves are rounded up, as on paper."""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Context, Decimal

_CONTEXT = Context(prec=60)


def decimals(value: float, digits: int = 0, scale: int = 1) -> str:
    """A number with so many digits behind the point; 12.5 becomes 13, where `format` makes 12 of it.

    Args:
        value: what 12 significant digits tell of it; the error of a sum of floats rounds nothing down.
        digits: behind the point.
        scale: what it is multiplied by first: 100 for percent.
    """
    exact = Decimal(f"{value:.12g}") * scale
    shown = f"{exact.quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP, _CONTEXT):f}"
    return shown[1:] if shown.startswith("-") and not shown.strip("-0.") else shown
