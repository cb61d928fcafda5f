"""Citations: the passages that an answer rests on, and the markers that name them in its text.

Support for an answer is read off each group's own reply; a model is never asked for it, and what it writes like a
marker is taken out. The radius is about the answer's text: a replaced group may well change who is cited.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

from robustrag_integrations._util.normalise import plain_words

_MARKER = re.compile(r"[ \t]?(?:\[\^?\d{1,4}(?:[ \t]?[,–-][ \t]?\d{1,4})*\]|【\d{1,4}[^【】\n]{0,40}】)")
_MOST_PHRASES = 50
_LONGEST_TEXT = 100_000  # characters that markers are put into
_SHORTEST_STEM = 4  # characters
_LONGEST_ENDING = 4
_MOST = 50  # mentions of one phrase
_SEPARATORS = ".,'’ \u00a0\u2009\u202f"  # between the thousands of a number
_GROUPED = re.compile(r"\d{4,30}")
_OPERATOR = re.compile(r"([<>=!~^≤≥]+|,)")  # a space may follow it: "< 10", ">= 2.7, < 4.1"


@dataclass(frozen=True)
class Citation:
    """One group that supports the answer.

    Attributes:
        number: its number (1-based) in marked text.
        group: the group's index.
        passage_ids: the ids of its passages.
        origins: their origins, without repeats.
        positions: their places (0-based; rank 1 is at 0) among the passages that the defence was given.
        words: the parts of the answer that the group says.
    """

    number: int
    group: int
    passage_ids: tuple[str, ...]
    origins: tuple[str, ...]
    positions: tuple[int, ...]
    words: tuple[str, ...]


def marked_text(text: str, citations: Sequence[Citation]) -> str:
    """The text with `[1]` after the last mention of what each cited group says, or at its end.

    What lies within something longer that the group says is not marked apart.
    """
    text, rest = text[:_LONGEST_TEXT], text[_LONGEST_TEXT:]
    text = _MARKER.sub("", text)
    numbers: dict[int, list[int]] = {}
    phrases: dict[str, tuple[int, int] | None] = {}
    for citation in citations:
        for phrase in citation.words:
            if phrase not in phrases and len(phrases) < _MOST_PHRASES:
                phrases[phrase] = max(mentions(phrase, text), key=lambda span: span[1], default=None)
        spans = {span for phrase in citation.words if (span := phrases.get(phrase)) is not None}
        ends = {
            end for start, end in spans if not any(s <= start < end <= e and (s, e) != (start, end) for s, e in spans)
        }
        for end in ends or {len(text.rstrip())}:
            numbers.setdefault(end, []).append(citation.number)
    parts, done = [], 0
    for end in sorted(numbers):
        parts += [text[done:end], " " if end else "", *(f"[{number}]" for number in numbers[end])]
        done = end
    return "".join([*parts, text[done:], _MARKER.sub("", rest)])


def mentions(phrase: str, text: str) -> list[tuple[int, int]]:
    """Return the first mentions (start, end) of a phrase in a text, in its order; case and hyphens do not matter.

    The phrase as it is comes first; if the text does not have it, its words with anything but letters and digits
    between them; then the last one with another ending. Words count only as wholes, but in scripts without spaces.
    Takes time linear in the length of the text.
    """
    for pattern in _patterns(phrase):
        if found := [match.span() for match in islice(re.finditer(pattern, text, re.IGNORECASE), _MOST)]:
            return found
    return []


def _patterns(phrase: str) -> list[str]:
    plain = plain_words(phrase).split()
    if not plain:
        return []
    joined = r"[\W_]{1,8}".join(map(_word, plain))
    found = []
    if not (phrase[0].isalnum() and phrase[-1].isalnum()):
        parts = _OPERATOR.split(phrase)
        spaced = "".join(re.escape(part) + (r"\s?" if _OPERATOR.fullmatch(part) else "") for part in parts)
        found.append(rf"(?<!\w){spaced}(?!\w)")  # signs at its ends belong to it: -5, C++, €9, < 10
    found.append(rf"(?<!\w){joined}(?!\w)")
    if not phrase.isascii() and not any(c.isspace() for c in phrase):
        found.append(joined)  # scripts that leave no space between words
    if len(plain[-1]) >= _SHORTEST_STEM and plain[-1].isalpha():
        found.append(rf"(?<!\w){joined}\w{{1,{_LONGEST_ENDING}}}(?!\w)")
    return found


def _word(word: str) -> str:
    """A word as it may be written: "ss" as "ß", a whole number with or without separators between its thousands."""
    if not _GROUPED.fullmatch(word):
        return re.escape(word).replace("ss", "(?:ss|ß)")
    first = len(word) % 3 or 3
    return f"[{_SEPARATORS}]?".join([word[:first], *(word[i : i + 3] for i in range(first, len(word), 3))])
