"""Makes hostile text safe to show on a terminal, and rounds numbers for tables: halves go up, as on paper."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Sequence
from decimal import ROUND_HALF_UP, Context, Decimal

UNSEEN = "\U000e0000-\U000e007f\U000e0100-\U000e01ef"
"""Tag characters and variation selectors, in which any text can be written that nobody sees: a class for patterns."""

_CONTEXT = Context(prec=400)  # digits of the largest float, and those after the point
_SELECTORS = re.compile("[\ufe00-\ufe0f\U000e0100-\U000e01ef]+")


def without_selectors(text: str) -> str:
    """Return a text without variation selectors, which Unicode takes for accents."""
    return text if text.isascii() else _SELECTORS.sub("", text)


def printable(text: str, limit: int | None = None) -> str:
    """Return one line without control, format or private characters, cut to `limit` characters with an ellipsis.

    Line breaks become spaces; what could move the cursor, change colours or reverse the reading direction becomes `·`.
    """
    head = text if limit is None else text[: limit + 1]
    plain = head.isascii() and head.isprintable()
    shown = head if plain else "".join(_visible(c) for c in head)
    if limit is not None and len(text) > limit:
        return shown[: max(limit - 1, 0)] + "…"
    return shown


def _visible(character: str) -> str:
    if character in "\n\r\t ":
        return " "
    if _SELECTORS.match(character):
        return "·"
    return "·" if unicodedata.category(character) in {"Cc", "Cf", "Co", "Cs", "Cn", "Zl", "Zp"} else character


def table(header: tuple[str, ...], rows: Sequence[tuple[str, ...]], *, limits: tuple[int, ...]) -> str:
    """Return a plain text table; every cell is made printable and cut to its column's limit."""
    cells = [tuple(printable(c, w) for c, w in zip(row, limits, strict=True)) for row in [header, *rows]]
    widths = [max(len(row[i]) for row in cells) for i in range(len(header))]
    lines = ["  ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)).rstrip() for row in cells]
    lines.insert(1, "  ".join("-" * w for w in widths))
    return "\n".join(lines)


def decimals(value: float, digits: int = 0, scale: int = 1) -> str:
    """Format a number with this many digits after the point, times `scale`; 12.5 becomes 13, where `format` makes 12.

    12 significant digits tell of it, so that the error of a sum of floats rounds nothing down.
    """
    if not math.isfinite(value):
        return str(float(value))
    exact = Decimal(f"{value:.12g}") * scale
    shown = f"{exact.quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP, _CONTEXT):f}"
    return shown[1:] if shown.startswith("-") and not shown.strip("-0.") else shown
