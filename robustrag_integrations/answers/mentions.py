"""Mentions of a phrase in a text: case, hyphens and punctuation between words do not matter."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import islice

from robustrag_integrations._util.normalise import plain_words

_MOST = 50  # mentions of one phrase
_SHORTEST_STEM = 4  # characters
_SHORTEST_GROUPED = 4  # digits
_LONGEST_GROUPED = 30
_LONGEST_ENDING = 4
_SHORT_TEXT = 2_000  # characters
_LONGEST_KEPT = 60  # characters of a phrase whose patterns are kept: what a hostile reply says is kept nowhere
_ENDING = re.compile(rf"\w{{1,{_LONGEST_ENDING + 1}}}")
_SEPARATORS = tuple(".,'’ \u00a0\u2009\u202f")  # between the thousands of a number
_OPERATOR = re.compile(r"([<>=!~^≤≥]+|,)")  # a space may follow it: "< 10", ">= 2.7, < 4.1"
_SIGNS = re.compile(r"[\W_]{1,8}(?![\W_])")


def mentions(phrase: str, text: str) -> list[tuple[int, int]]:
    """Return the first mentions (start, end) of a phrase in a text, in its order.

    The phrase as it is comes first; if the text does not have it, its words with anything but letters and digits
    between them; then the last one with another ending. Words count only as wholes, but in scripts without spaces.
    Takes time linear in the length of the text.
    """
    words = _plain_words(phrase) if text.isascii() else None
    if words is not None and (len(text) <= _SHORT_TEXT or not any(map(_may_be_grouped, words))):
        return _plain_mentions(words, text.lower())
    for pattern in _kept_patterns(phrase) if len(phrase) <= _LONGEST_KEPT else _patterns(phrase):
        if found := [match.span() for match in islice(pattern.finditer(text), _MOST)]:
            return found
    return []


def _plain_words(phrase: str) -> list[str] | None:
    """The words of a phrase that can be looked for without a pattern.

    Compiling one takes longer than to search a short text. In a long one, patterns are faster for numbers that may be
    written with separators.
    """
    if not (phrase.isascii() and phrase[:1].isalnum() and phrase[-1:].isalnum()):
        return None
    return plain_words(phrase).split()


def _plain_mentions(words: Sequence[str], text: str) -> list[tuple[int, int]]:
    """Return what the patterns find of these words in a text of ASCII characters, case-folded."""
    whole: list[tuple[int, int]] = []
    longer: list[tuple[int, int]] = []  # with another ending
    first = _parts_of(words[0])[0]
    may_end = len(words[-1]) >= _SHORTEST_STEM and words[-1].isalpha()
    done = longer_done = at = 0
    while len(whole) < _MOST and (start := text.find(first, at)) >= 0:
        at = start + 1
        if (start and _in_word(text[start - 1])) or (end := _end_of(words, text, start)) is None:
            continue
        ending = _ENDING.match(text, end)
        size = len(ending[0]) if ending else 0
        if size == 0 and start >= done:
            whole.append((start, end))
            done = end
        elif may_end and 0 < size <= _LONGEST_ENDING and start >= longer_done and len(longer) < _MOST:
            longer.append((start, end + size))
            longer_done = end + size
    return whole or longer


def _end_of(words: Sequence[str], text: str, start: int) -> int | None:
    """Return the end of words that begin here, up to eight signs apart; None if they do not follow."""
    end = _end_of_word(words[0], text, start)
    for word in words[1:]:
        gap = None if end is None else _SIGNS.match(text, end)
        end = None if gap is None else _end_of_word(word, text, gap.end())
    return end


def _end_of_word(word: str, text: str, start: int) -> int | None:
    if text.startswith(word, start):
        return start + len(word)
    first, *others = _parts_of(word)
    if not others or not text.startswith(first, start):
        return None
    end = start + len(first)
    for part in others:
        end += text.startswith(_SEPARATORS, end)
        if not text.startswith(part, end):
            return None
        end += len(part)
    return end


def _in_word(character: str) -> bool:
    return character.isalnum() or character == "_"


def _patterns(phrase: str) -> tuple[re.Pattern[str], ...]:
    words = [_word(word) for word in plain_words(phrase).split()]
    if not words:
        return ()
    joined = r"[\W_]{1,8}".join(words)
    found = []
    if re.escape(phrase) != joined and not (phrase[0].isalnum() and phrase[-1].isalnum()):
        spaced = "".join(_spaced(part) for part in _OPERATOR.split(phrase))
        found.append(rf"(?<!\w){spaced}(?!\w)")  # signs at its ends belong to it: -5, C++, €9, < 10
    found.append(rf"(?<!\w){joined}(?!\w)")
    if not phrase.isascii() and not any(c.isspace() for c in phrase):
        found.append(joined)  # scripts that leave no space between words
    if len(words[-1]) >= _SHORTEST_STEM and words[-1].isalpha():
        found.append(rf"(?<!\w){joined}\w{{1,{_LONGEST_ENDING}}}(?!\w)")
    return tuple(re.compile(pattern, re.IGNORECASE) for pattern in found)


_kept_patterns = lru_cache(maxsize=1024)(_patterns)  # the keywords of a question are looked for in every reply


def _spaced(part: str) -> str:
    """A part of a phrase as it may be written."""
    return re.escape(part) + (r"\s?" if _OPERATOR.fullmatch(part) else "")


def _may_be_grouped(word: str) -> bool:
    """True if it is a whole number that may be written with separators between its thousands."""
    return word.isdecimal() and _SHORTEST_GROUPED <= len(word) <= _LONGEST_GROUPED


def _word(word: str) -> str:
    """A word as it may be written: "ss" as "ß", a whole number with or without separators between its thousands."""
    return f"[{''.join(_SEPARATORS)}]?".join(map(re.escape, _parts_of(word))).replace("ss", "(?:ss|ß)")


def _parts_of(word: str) -> list[str]:
    """Between which separators may stand."""
    if not _may_be_grouped(word):
        return [word]
    first = len(word) % 3 or 3
    return [word[:first], *(word[i : i + 3] for i in range(first, len(word), 3))]
