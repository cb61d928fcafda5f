"""From a hostile response to keywords: characters, lines, and the whole extractors."""

from __future__ import annotations

from contextlib import suppress
from functools import cache

from robustrag_integrations.text.keywords import (
    MAX_CHARACTERS,
    MAX_KEYWORD_CHARACTERS,
    MAX_LINES,
    WordExtractor,
    as_keyword,
    plain_lines,
)
from robustrag_integrations.text.spacy_keywords import SpacyKeywordExtractor
from tests.fuzz.checks import assert_harmless_on_a_terminal
from tests.fuzz.hostile import WORDS, text
from tests.fuzz.source import Source, Target
from tests.helpers.crafted_words import word_like, word_with_hash


@cache
def _extractor() -> SpacyKeywordExtractor:
    return SpacyKeywordExtractor()


def normalising(source: Source) -> None:
    """Lines and keywords are plain, bounded, and stay the same when normalised again."""
    response = text(source)
    lines = plain_lines(response)
    assert len(lines) <= MAX_LINES
    assert sum(map(len, lines)) <= MAX_CHARACTERS + MAX_LINES
    for line in lines:
        assert line == line.strip() != ""
        assert_harmless_on_a_terminal(line, lines=False)
        keyword = as_keyword(line)
        assert_keyword(keyword, allow_empty=True)


def words(source: Source) -> None:
    """Plain words are well formed keywords, their number is bounded, and they are the same a second time."""
    response, extractor = text(source, 5, 300), WordExtractor()
    keywords = extractor(response)
    assert len(keywords) <= 3 * min(len(response), MAX_CHARACTERS)
    for keyword in keywords:
        assert_keyword(keyword)
    assert extractor(response) == keywords


def extraction(source: Source) -> None:
    """Every keyword is well formed, and their number is bounded by the text's length."""
    response = text(source, 5, 300)
    keywords = _read(response)
    assert len(keywords) <= 40 + 12 * min(len(response), MAX_CHARACTERS)
    for keyword in keywords:
        assert_keyword(keyword)


_HONEST = ("Paris is the capital of France.", "The runners don't know John's cities.", "It is Mount Everest.", "NOUN")
_COLLIDED_WITH = ("Paris", "the", "'s", "n't", "cities", "xxx", "X", "IS_ALPHA", "don't")
_GLUE = (" ", " ", "-", "'s ", ".", "/", ", ", "(", ") ", "_", "\n", "@", "://", "n't ", " IS_ALPHA ", "&", "")


@cache
def _expected() -> tuple[frozenset[str], ...]:
    return tuple(map(_extractor(), _HONEST))


def crafted_words(source: Source) -> None:
    """Words with a chosen hash cost the response that holds them at most, and change nothing about a later response."""
    words = [
        word_with_hash(source.pick((0, 1, 92, 456, 1 << 63, 826361138722620965)), source.below(3)),
        word_like(source.pick(_COLLIDED_WITH), source.below(2)),
        *source.some(lambda: source.pick(WORDS), 3),
    ]
    pieces = source.some(lambda: source.pick((*words, words[0].lower(), words[1].swapcase())), 8) or words
    response = "".join(piece + source.pick(_GLUE) for piece in pieces)
    source.keep(response)
    _expected()
    found = _read(response)
    for keyword in found:
        assert_keyword(keyword)
    assert tuple(map(_extractor(), _HONEST)) == _expected()
    assert _read(response) == found


def _read(response: str) -> frozenset[str]:
    """Its keywords; none where spaCy confuses its words."""
    with suppress(AssertionError, IndexError, KeyError, SystemError, ValueError):
        return _extractor()(response)
    return frozenset()


def assert_keyword(keyword: str, *, allow_empty: bool = False) -> None:
    """Single-spaced and bounded, without separators of the list or characters that act on a terminal."""
    assert keyword or allow_empty
    assert len(keyword) <= 3 * MAX_KEYWORD_CHARACTERS
    assert ", " not in keyword
    assert keyword == " ".join(keyword.split())
    assert_harmless_on_a_terminal(keyword, lines=False)


TARGETS = (
    Target("crafted-words", crafted_words, 1),
    Target("extraction", extraction, 1),
    Target("normalising", normalising, 10),
    Target("words", words, 5),
)
