"""Citations: the passages that an answer rests on, and the markers that name them in its text.

Support for an answer is read off each source's own reply; a model is never asked for it, and what it writes like a
marker is taken out. The radius is about the answer's text: a replaced source may well change who is cited.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

from robustrag_integrations._util.display import printable
from robustrag_integrations._util.normalise import plain_words

_MARKER = re.compile(r"[ \t]?(?:\[\^?\d{1,4}(?:[ \t]?[,–-][ \t]?\d{1,4})*\]|【\d{1,4}[^【】\n]{0,40}】)")
_MOST_PHRASES = 50
_LONGEST_TEXT = 100_000  # characters that markers are put into
_MOST = 50  # mentions of one phrase
_SCHEME = re.compile(r"\A[a-z][a-z0-9+.-]{0,20}://", re.I)  # without it, nothing makes a link of an address


@dataclass(frozen=True)
class Citation:
    """One source that supports the answer: its number (from 1) in marked text, its index, and the passages' places.

    Without an index it stands for all trusted passages, which were read together. `positions` are places (0-based)
    among the passages that the defence was given; `words` are what the source says.
    """

    number: int
    source: int | None
    passage_ids: tuple[str, ...]
    origins: tuple[str, ...]
    positions: tuple[int, ...]
    words: tuple[str, ...]


def shown_origin(origin: str) -> str:
    """Return the name of a source as people are shown it."""
    return printable(_SCHEME.sub("", origin), 60)


def listed(citations: Sequence[Citation]) -> str:
    """Return what the markers of a text stand for: "[1] a.pdf; [2] b.pdf, c.pdf"."""
    names = (", ".join(map(shown_origin, c.origins or c.passage_ids)) for c in citations)
    plain = (re.sub(r"[][<>`;]", "_", name) or "source" for name in names)
    return "; ".join(f"[{c.number}] {name}" for c, name in zip(citations, plain, strict=True))


def marked_text(text: str, citations: Sequence[Citation]) -> str:
    """The text with `[1]` after the last mention of what each cited source says, or at its end.

    What lies within something longer that the source says is not marked apart.
    """
    text, rest = _MARKER.sub("", text[:_LONGEST_TEXT]), _MARKER.sub("", text[_LONGEST_TEXT:])
    numbers: dict[int, list[int]] = {}
    for citation in citations:
        said = [word for word in citation.words if not any(word in other != word for other in citation.words)]
        ends = {span[1] for phrase in said[:_MOST_PHRASES] if (span := last_mention(phrase, text))}
        for end in ends or {len(text.rstrip())}:
            numbers.setdefault(end, []).append(citation.number)
    parts, done = [], 0
    for end in sorted(numbers):
        parts += [text[done:end], " " if end else "", *(f"[{number}]" for number in numbers[end])]
        done = end
    return "".join([*parts, text[done:], rest])


def last_mention(phrase: str, text: str) -> tuple[int, int] | None:
    """Return where the last mention of a phrase in a text begins and ends; case does not matter.

    Between its words may stand anything but letters and digits. Words count only as wholes, but in scripts without
    spaces; signs at the ends of a phrase (-5, C++, €9) belong to it. Takes time linear in the length of the text.
    """
    words = plain_words(phrase).split()
    if not words:
        return None
    joined = r"[\W_]{1,8}".join(map(re.escape, words))
    patterns = [rf"(?<!\w){joined}(?!\w)"]
    if not (phrase[0].isalnum() and phrase[-1].isalnum()):
        patterns.insert(0, rf"(?<!\w){re.escape(phrase)}(?!\w)")
    if not phrase.isascii() and not any(c.isspace() for c in phrase):
        patterns.append(joined)
    for pattern in patterns:
        if spans := [match.span() for match in islice(re.finditer(pattern, text, re.IGNORECASE), _MOST)]:
            return spans[-1]
    return None
