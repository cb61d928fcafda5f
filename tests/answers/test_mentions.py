"""Where a text mentions a phrase."""

from __future__ import annotations

import random

import pytest

from robustrag_integrations.answers.mentions import _kept_patterns, _patterns, mentions


@pytest.mark.parametrize(
    ("phrase", "text", "found"),
    [
        ("karl gross", "KARL-GROSS, Karl  Gross and Karl Grossmann", ["KARL-GROSS", "Karl  Gross"]),
        ("15", "2015, 15 and 15th", ["15"]),
        ("1250", "1 250 tonnes or 1,250 or 1250", ["1 250", "1,250", "1250"]),
        ("9:00-17:00", "open 9:00 - 17:00", ["9:00 - 17:00"]),
        ("c++", "C++ and C", ["C++"]),
        ("<10", "10 or < 10", ["< 10"]),
        (">=2.7,<4.1", "it needs >= 2.7, < 4.1", [">= 2.7, < 4.1"]),
        ("grosse strasse", "Große Straße, GROẞE STRASSE", ["Große Straße", "GROẞE STRASSE"]),
        ("北京", "答案是北京市", ["北京"]),
        ("winner", "the winners", ["winners"]),
        ("...", "a ... b", []),
        ("", "text", []),
    ],
)
def test_mentions_are_found_however_they_are_written(phrase: str, text: str, found: list[str]) -> None:
    assert [text[start:end] for start, end in mentions(phrase, text)] == found


def test_hostile_texts_take_linear_time() -> None:
    for text in ("a " * 50_000, "1" * 100_000, "1 " * 50_000, "_" * 100_000, "a_" * 50_000):
        for phrase in ("a a a a b", "1" * 30, "a b", "1111 1111"):
            assert len(mentions(phrase, text)) <= 50


def test_patterns_of_long_phrases_are_found_and_not_kept() -> None:
    _kept_patterns.cache_clear()
    long = "пароход " * 25
    for number in range(5):
        phrase = f"{long}{number}"
        assert mentions(phrase, f"Вот {phrase}.") == [(4, 4 + len(phrase))]
    assert _kept_patterns.cache_info().currsize == 0
    assert mentions("пароход", "Вот пароход.") == [(4, 11)]
    assert _kept_patterns.cache_info().currsize == 1


def test_plain_phrases_are_found_where_their_patterns_find_them() -> None:
    """ASCII text is searched without patterns; the patterns say what is to be found."""
    rng = random.Random(3)
    pieces = [
        "bo",
        "Ek",
        "boek",
        "a",
        "bridge",
        "Bridges",
        "ending",
        "endings",
        "12",
        "1234",
        "1,234",
        "1.234'567",
        "1,2345",
        "1 234 567",
        "1234567",
        "_",
        "-",
        "  ",
        "'s",
        "/(",
    ]
    for size in 3000 * [9] + 10 * [3000]:
        text = "".join(rng.choice(pieces) + rng.choice(["", " ", ", "]) for _ in range(rng.randrange(size // 3, size)))
        phrase = "".join(rng.choice(pieces) + rng.choice(["", " "]) for _ in range(rng.randrange(1, 4)))
        found = ([m.span() for m in pattern.finditer(text)][:50] for pattern in _patterns(phrase))
        assert mentions(phrase, text) == next(filter(None, found), []), (phrase, text)
