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
from tests.fuzz.hostile import text
from tests.fuzz.source import Source, Target


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


TARGETS = (Target("extraction", extraction, 1), Target("normalising", normalising, 10), Target("words", words, 5))
