"""Phrases within phrases."""

from __future__ import annotations

import pytest

from robustrag_integrations.defenses.agreement.runs import all_runs, longest

_LONG = "a b c d e f g h i j k l m n"


@pytest.mark.parametrize(
    ("phrases", "kept"),
    [
        ((), ()),
        (("bo", "ek", "bo ek"), ("bo ek",)),
        (("bo", "bob ek"), ("bo", "bob ek")),  # words, not parts of words
        (("war", "war i", "world war i"), ("world war i",)),
        (("a a", "a a a"), ("a a a",)),
        (("15", "15%", "about 15%"), ("15", "about 15%")),
        (("東京", "東京都"), ("東京都",)),
        ((_LONG, _LONG[2:], "b c"), (_LONG, _LONG[2:])),  # a part of more than twelve words is none
        (("", "bo"), ("", "bo")),
    ],
)
def test_phrases_within_others_are_left_out(phrases: tuple[str, ...], kept: tuple[str, ...]) -> None:
    assert longest(phrases) == frozenset(kept)


def test_few_phrases_and_many_are_searched_alike() -> None:
    few = {f"{first} {second}" for first in "abcd" for second in "abcd"} | set("abcd") | {"a b c"}
    many = few | {f"w{number}" for number in range(100)}
    assert longest(few) == few - all_runs(few)
    assert longest(many) == longest(few) | {f"w{number}" for number in range(100)}
