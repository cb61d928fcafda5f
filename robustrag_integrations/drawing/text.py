"""Makes hostile text visible on a page: invisible characters, and those that move others, are named in place."""

from __future__ import annotations

import re
import unicodedata

_STACK = re.compile(r"[\u0300-\u036f\u0483-\u0489\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]{7,}")
_HIGHEST = 6  # marks on one letter; no script needs more, and a tower of them covers other lines
_SHOWN = "\n\t\u200c\u200d"  # without joiners Persian and emoji fall apart; they move nothing
_HIDDEN = frozenset({"Cc", "Cf", "Co", "Cs", "Cn", "Zl", "Zp"})


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
