"""Where a text mentions a phrase."""

from __future__ import annotations

import pytest

from robustrag_integrations.answers.citations import mentions


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
