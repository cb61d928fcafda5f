"""Citations: the passages that an answer rests on, and the markers that name them in its text.

Support for an answer is read off each group's own reply; a model is never asked for it, and what it writes like a
marker is taken out. The radius is about the answer's text: a replaced group may well change who is cited.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from robustrag_integrations.answers.mentions import mentions

_MARKER = re.compile(r"[ \t]?(?:\[\^?\d{1,4}(?:[ \t]?[,–-][ \t]?\d{1,4})*\]|【\d{1,4}[^【】\n]{0,40}】)")
_MOST_PHRASES = 50
_LONGEST_TEXT = 100_000  # characters that markers are put into


@dataclass(frozen=True)
class Citation:
    """One group that supports the answer.

    Attributes:
        number: its number (1-based) in marked text.
        group: the group's index.
        passage_ids: the ids of its passages.
        origins: where they are from, without repeats.
        positions: their places (0-based; rank 1 is at 0) among the passages that the defence was given.
        words: what of the answer the group says.
    """

    number: int
    group: int
    passage_ids: tuple[str, ...]
    origins: tuple[str, ...]
    positions: tuple[int, ...]
    words: tuple[str, ...]


def marked_text(text: str, citations: Sequence[Citation]) -> str:
    """The text with `[1]` after the last mention of what each cited group says, or at its end."""
    text, rest = text[:_LONGEST_TEXT], text[_LONGEST_TEXT:]
    text = _MARKER.sub("", text)
    numbers: dict[int, list[int]] = {}
    phrases: dict[str, int] = {}
    for citation in citations:
        for phrase in citation.words:
            if phrase not in phrases and len(phrases) < _MOST_PHRASES:
                phrases[phrase] = max((end for _, end in mentions(phrase, text)), default=-1)
        ends = {phrases.get(phrase, -1) for phrase in citation.words}
        for end in {e for e in ends if e >= 0} or {len(text.rstrip())}:
            numbers.setdefault(end, []).append(citation.number)
    parts, done = [], 0
    for end in sorted(numbers):
        parts += [text[done:end], " " if end else "", *(f"[{number}]" for number in numbers[end])]
        done = end
    return "".join([*parts, text[done:], _MARKER.sub("", rest)])
