"""Makes hostile text safe to show on a terminal or a page."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

UNSEEN = "\U000e0000-\U000e007f\U000e0100-\U000e01ef"
"""Tag characters and variation selectors, in which any text can be written that nobody sees: a class for patterns."""

SELECTORS = re.compile("[\ufe00-\ufe0f\U000e0100-\U000e01ef]+")
"""Variation selectors, which Unicode takes for accents."""

_HIDDEN = frozenset({"Cc", "Cf", "Co", "Cs", "Cn", "Zl", "Zp"})
_SHOWN = "\n\t\u200c\u200d"  # on a page: without joiners Persian and emoji fall apart; they move nothing
_STACK = re.compile(r"[\u0300-\u036f\u0483-\u0489\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]{7,}")
_HIGHEST = 6  # marks on one letter; no script needs more, and a tower of them covers other lines


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
    return "·" if unicodedata.category(character) in _HIDDEN else character


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


def visible(text: str, limit: int | None = None) -> str:
    """Name every control, format, private or unpaired character of a text as `⟨U+202E⟩`; lines stay lines.

    Of marks that are stacked on one letter the first few are shown; of a text, `limit` characters and an ellipsis. What
    is returned can be written in UTF-8, has no hidden part and cannot reverse the reading direction.
    """
    head = text[:limit].replace("\r\n", "\n")
    if not (head.isascii() and head.replace("\n", "").isprintable()):
        head = "".join(map(_named, _STACK.sub(_unstacked, head)))
    return head + "…" if limit is not None and len(text) > limit else head


def one_line(text: str, limit: int) -> str:
    """Do as `visible`, on one line."""
    return " ".join(visible(text, limit).split())


def _named(character: str) -> str:
    is_selector = "\U000e0100" <= character <= "\U000e01ef"  # a hidden alphabet of 240 letters; no script needs it
    if character in _SHOWN or not (is_selector or unicodedata.category(character) in _HIDDEN):
        return character
    return f"⟨U+{ord(character):04X}⟩"


def _unstacked(marks: re.Match[str]) -> str:
    return f"{marks[0][:_HIGHEST]}⟨and {len(marks[0]) - _HIGHEST} more marks⟩"
