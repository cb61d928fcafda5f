"""Where a text mentions a phrase, however it is written: case, hyphens and punctuation between words do not matter."""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import islice

from robustrag_integrations.normalise import plain_words

_MOST = 50  # mentions of one phrase
_SHORTEST_STEM = 4  # characters
_SHORTEST_GROUPED = 4  # digits
_LONGEST_GROUPED = 30


def mentions(phrase: str, text: str) -> list[tuple[int, int]]:
    """The first mentions (start, end) of a phrase in a text, in its order.

    The phrase as it is comes first; if the text does not have it, its words with anything but letters and digits
    between them; then the last one with another ending. Words count only as wholes, but in scripts without spaces.
    Takes time linear in the length of the text.
    """
    for pattern in _patterns(phrase):
        if found := [match.span() for match in islice(pattern.finditer(text), _MOST)]:
            return found
    return []


@lru_cache(maxsize=4096)
def _patterns(phrase: str) -> tuple[re.Pattern[str], ...]:
    words = [_word(word) for word in plain_words(phrase).split()]
    if not words:
        return ()
    joined = r"[\W_]{1,8}".join(words)
    found = []
    if re.escape(phrase) != joined and not (phrase[0].isalnum() and phrase[-1].isalnum()):
        found.append(rf"(?<!\w){re.escape(phrase)}(?!\w)")  # signs at its ends belong to it: -5, C++, €9
    found.append(rf"(?<!\w){joined}(?!\w)")
    if not phrase.isascii() and not any(c.isspace() for c in phrase):
        found.append(joined)  # scripts that leave no space between words
    if len(words[-1]) >= _SHORTEST_STEM and words[-1].isalpha():
        found.append(rf"(?<!\w){joined}\w{{1,4}}(?!\w)")
    return tuple(re.compile(pattern, re.IGNORECASE) for pattern in found)


def _word(word: str) -> str:
    """A word as it may be written: a whole number with or without separators between its thousands."""
    if not (word.isdecimal() and _SHORTEST_GROUPED <= len(word) <= _LONGEST_GROUPED):
        return re.escape(word)
    first = len(word) % 3 or 3
    groups = [word[:first], *(word[i : i + 3] for i in range(first, len(word), 3))]
    return r"[.,'’ \u00a0\u2009\u202f]?".join(groups)
