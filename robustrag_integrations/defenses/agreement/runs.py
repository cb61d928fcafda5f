"""Phrases within phrases, in time linear in their number."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from unicodedata import combining

from robustrag_integrations.keywords.han import simplified

_LONGEST = 12  # words, or characters of a script without spaces


def runs_of(phrase: str) -> Iterator[str]:
    """Every part of a phrase that is shorter: neighbouring words, or characters where nothing stands between words.

    And the phrase in simplified characters, which stands beside one in traditional ones.
    """
    if (plain := simplified(phrase)) != phrase:
        yield plain
    words = phrase.split()
    units, joined = (words, " ") if len(words) > 1 else (list(phrase), "")
    if not joined and (phrase.isascii() or len(phrase) > _LONGEST):
        return
    most = min(len(units) - 1, _LONGEST)
    for size in range(1, most + 1):
        for start in range(len(units) - size + 1):
            yield joined.join(units[start : start + size])


def all_runs(phrases: Iterable[str]) -> frozenset[str]:
    """The parts of all of these phrases."""
    return frozenset(run for phrase in phrases for run in runs_of(phrase))


def longest(phrases: Collection[str]) -> frozenset[str]:
    """The phrases that are no part of another one."""
    return frozenset(phrases) - all_runs(phrases)


def parts_of(phrase: str) -> Iterator[str]:
    """Every part of a phrase, signs left out too: "dwyer" of "o'dwyer", "15" of "15%". Not the phrase itself."""
    yield from runs_of(phrase)
    if (plain := _without_signs(phrase)) not in ("", phrase):
        yield plain
        yield from runs_of(plain)


def alone(words: Collection[str], phrases: Collection[str]) -> frozenset[str]:
    """Which of these words are no part of one of the phrases but themselves."""
    if not words:
        return frozenset()
    within = frozenset(part for phrase in phrases for part in parts_of(phrase))
    return frozenset(words) - within


def _without_signs(phrase: str) -> str:
    if phrase.replace(" ", "").isalnum():
        return phrase
    return " ".join("".join(c if c.isalnum() or combining(c) else " " for c in phrase).split())
