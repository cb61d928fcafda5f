"""Makes hostile text visible on a page: invisible characters, and those that move others, are named in place."""

from __future__ import annotations

import re
import unicodedata

_RUN = re.compile(r"(⟨U\+[0-9A-F]{4,6}⟩)\1{3,}")
_STACK = re.compile(r"[\u0300-\u036f\u0483-\u0489\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]{7,}")
_HIGHEST = 6  # marks on one letter; no script needs more, and a tower of them covers other lines
_JOINERS = "\u200c\u200d"  # without them Persian and emoji fall apart; they move nothing
_HIDDEN = frozenset({"Cc", "Cf", "Co", "Cs", "Cn", "Zl", "Zp"})


def visible(text: str, limit: int | None = None) -> str:
    """Name every control, format, private or unpaired character of a text as `⟨U+202E⟩`; lines stay lines.

    Of marks that are stacked on one letter the first few are shown.

    Args:
        text: anything.
        limit: characters of `text` that are shown; an ellipsis follows when there are more.

    Returns:
        Text that can be written in UTF-8, has no hidden part and cannot reverse the reading direction.
    """
    head = text if limit is None else text[:limit]
    head = head.replace("\r\n", "\n")
    if not head.isascii():
        head = _STACK.sub(_unstacked, head)
    if not head.replace("\n", "").isprintable() or _has_selectors(head):
        head = _RUN.sub(_counted, "".join(map(_named, head)))
    return head + "…" if limit is not None and len(text) > limit else head


def one_line(text: str, limit: int) -> str:
    """Do as `visible`, on one line."""
    return " ".join(visible(text, limit).split())


def _named(character: str) -> str:
    if character in "\n\t" or character in _JOINERS:
        return character
    if unicodedata.category(character) in _HIDDEN or _is_selector(character):
        return f"⟨U+{ord(character):04X}⟩"
    return character


def _counted(run: re.Match[str]) -> str:
    return f"{run[1][:-1]} ×{len(run[0]) // len(run[1])}⟩"


def _unstacked(marks: re.Match[str]) -> str:
    return f"{marks[0][:_HIGHEST]}⟨and {len(marks[0]) - _HIGHEST} more marks⟩"


def _is_selector(character: str) -> bool:
    """True for variation selectors that no script needs: a hidden alphabet of 240 letters."""
    return "\U000e0100" <= character <= "\U000e01ef"


def _has_selectors(text: str) -> bool:
    return not text.isascii() and any(map(_is_selector, text))
