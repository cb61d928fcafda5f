"""Makes hostile text safe to show on a terminal."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

UNSEEN = "\U000e0000-\U000e007f\U000e0100-\U000e01ef"
"""Tag characters and variation selectors, in which any text can be written that nobody sees: a class for patterns."""

SELECTORS = re.compile("[\ufe00-\ufe0f\U000e0100-\U000e01ef]+")
"""Variation selectors, which Unicode takes for accents."""


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
    if SELECTORS.match(character):
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
    """Format a number with this many digits after the point, times `scale`."""
    return f"{value * scale + 0.0:.{digits}f}"
