"""Phrases within phrases, in time linear in their number."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from functools import lru_cache
from itertools import accumulate
from unicodedata import combining

from robustrag_integrations.keywords.han import simplified

_LONGEST = 12  # words, or characters of a script without spaces
_LONGEST_KEPT = 60  # characters of a phrase whose parts are kept
_FEW = 64  # phrases that are looked for in one another


def runs_of(phrase: str) -> list[str]:
    """Every part of a phrase that is shorter: neighbouring words, or characters where nothing stands between words.

    And the phrase in simplified characters, which stands beside one in traditional ones.
    """
    plain = simplified(phrase)
    found = [] if plain == phrase else [plain]
    words = phrase.split()
    if len(words) > 1:
        phrase = " ".join(words)
        ends = list(accumulate(map(len, words), lambda end, length: end + 1 + length))
        starts = [0, *(end + 1 for end in ends)]
    elif phrase.isascii() or len(phrase) > _LONGEST:
        return found
    else:
        starts, ends = list(range(len(phrase))), list(range(1, len(phrase) + 1))
    most = min(len(ends) - 1, _LONGEST)  # units of a part
    return found + [phrase[start:end] for i, start in enumerate(starts) for end in ends[i : i + most]]


def all_runs(phrases: Iterable[str]) -> frozenset[str]:
    """The parts of all of these phrases."""
    return frozenset(run for phrase in phrases for run in runs_of(phrase))


def longest(phrases: Collection[str]) -> frozenset[str]:
    """The phrases that are no part of another one."""
    phrases = frozenset(phrases)
    few = len(phrases) <= _FEW and "" not in phrases and _is_plain(" ".join(phrases))
    return alone(phrases, phrases) if few else phrases - all_runs(phrases)


def parts_of(phrase: str) -> frozenset[str]:
    """Every part of a phrase, signs left out too: "dwyer" of "o'dwyer", "15" of "15%". Not the phrase itself."""
    return _kept_parts_of(phrase) if len(phrase) <= _LONGEST_KEPT else _parts_of(phrase)


def _parts_of(phrase: str) -> frozenset[str]:
    plain = _without_signs(phrase)
    if plain in ("", phrase):
        return frozenset(runs_of(phrase))
    return frozenset((*runs_of(phrase), plain, *runs_of(plain)))


_kept_parts_of = lru_cache(maxsize=512)(_parts_of)  # a question asks for the parts of its keywords many times


def alone(words: Collection[str], phrases: Collection[str]) -> frozenset[str]:
    """Which of these words are no part of one of the phrases but themselves. None of them holds a NUL character."""
    phrases = frozenset(phrases)
    plain = phrases if _is_plain(" ".join(phrases)) and "" not in phrases else frozenset(filter(_is_plain, phrases))
    text = "\0".join([f" {phrase} " for phrase in plain])
    left = frozenset([w for w in words if text.count(f" {w} ") <= (w in plain) or w.count(" ") >= _LONGEST])
    for phrase in phrases - plain:
        left -= parts_of(phrase)
    return left


def _is_plain(phrase: str) -> bool:
    """Whether its parts are nothing but its neighbouring words."""
    return phrase.isascii() and phrase.replace(" ", "").isalnum() and " ".join(phrase.split()) == phrase


def _without_signs(phrase: str) -> str:
    if phrase.replace(" ", "").isalnum():
        return phrase
    return " ".join("".join(c if c.isalnum() or combining(c) else " " for c in phrase).split())
