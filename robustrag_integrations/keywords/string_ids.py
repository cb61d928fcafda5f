"""Words that spaCy's string store cannot keep apart, found before it sees them.

spaCy identifies every string by a 64-bit hash without a key, so the author of a passage can make words with any hash:
0 (spaCy raises), the id of one of spaCy's own symbols, or the hash of another word (spaCy confuses the two). Such a
word is tagged by a stand-in of the same length. What is replaced is a function of the one response.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

_SPAN = re.compile(r"\S+")
_WORD = re.compile(r"\w+")
_STAND_IN = "x"
_LONGEST_SURE = 6  # bytes; a chosen hash takes 8 bytes that are free, a chosen pair of short words 7 and 8


@dataclass(frozen=True)
class SafeLine:
    """A line in which crafted words were replaced by others of the same length.

    Attributes:
        text: what the tagger may see.
        replaced: where the stand-ins begin and end, in characters.
    """

    text: str
    replaced: tuple[tuple[int, int], ...] = ()

    def stands_in(self, start: int, end: int) -> bool:
        """Whether any of these characters is a stand-in's."""
        at = bisect_right(self.replaced, (start, len(self.text))) - 1
        before = at >= 0 and start < self.replaced[at][1]
        return before or (at + 1 < len(self.replaced) and self.replaced[at + 1][0] < end)


def without_crafted_words(lines: Sequence[str], strings: Any) -> list[SafeLine]:
    """Replace the words that a string store would confuse with something else.

    Args:
        lines: one response.
        strings: spaCy's `StringStore`; nothing is added to it.
    """
    known: dict[int, str] = {}

    def is_crafted(span: str) -> bool:
        pieces = dict.fromkeys([span, *_WORD.findall(span)])  # in order: the first of two confused words stays
        return any(_is_confused(text, strings, known) for piece in pieces for text in (piece, piece.lower()))

    return [_replaced(line, is_crafted) for line in lines]


def without_long_words(lines: Sequence[str]) -> list[SafeLine]:
    """Replace every word that is long enough to be crafted, whether or not it is."""
    return [_replaced(line, lambda span: len(span.encode()) > _LONGEST_SURE) for line in lines]


def _replaced(line: str, unsafe: Callable[[str], bool]) -> SafeLine:
    pieces: list[str] = []
    spans: list[tuple[int, int]] = []
    done = 0
    for match in _SPAN.finditer(line):
        if unsafe(match.group()):
            start, end = match.span()
            pieces += [line[done:start], _STAND_IN * (end - start)]
            spans.append((start, end))
            done = end
    return SafeLine("".join([*pieces, line[done:]]), tuple(spans)) if spans else SafeLine(line)


def _is_confused(text: str, strings: Any, known: dict[int, str]) -> bool:
    """Whether the store would take this text for another one, or has no id for it at all."""
    try:
        identity = strings[text]
    except SystemError:  # its hash is 0
        return True
    if known.setdefault(identity, text) != text:
        return True
    return identity in strings and strings[identity] != text
