"""Sets and cuts against all others, and the rules over words that stand in for models of inference and of meaning."""

from __future__ import annotations

import random
from itertools import combinations

import pytest

from benchmarks.compare.peers import (
    differ,
    hashed_words,
    largest_independent_set,
    source_side,
    written_alike,
)

QUESTION = "Who runs the mill?"


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ("Anna Lind", "Anna Lind runs the mill.", False),
        ("Anna Lind", "ANNA LIND", False),
        ("Lind", "Anna Lind", False),
        ("Anna Lind", "Karl Gross", True),
        ("Anna Lind", "Anna Gross", True),
        ("", "Anna Lind", False),
        ("the mill", "Anna Lind", False),
        ("5 km", "five kilometres", True),  # words, not meaning
    ],
)
def test_answers_differ_where_each_has_a_word_of_its_own(first: str, second: str, expected: bool) -> None:
    assert differ(QUESTION, first, second) is differ(QUESTION, second, first) is expected


def test_near_copies_of_one_cluster_are_found_and_others_are_not() -> None:
    lie = "Karl Gross runs the mill in Skel, as all records of the town show."
    texts = ["Anna Lind runs the mill.", lie, "Fog forms when air cools near the ground.", f"{lie} Indeed."]
    assert written_alike(texts, hashed_words(texts)) == {1, 3}
    assert written_alike(texts[:1], hashed_words(texts[:1])) == frozenset()


def _by_enumeration(conflicts: list[list[bool]]) -> tuple[int, ...]:
    places = range(len(conflicts))
    for size in range(len(conflicts), -1, -1):
        for chosen in combinations(places, size):  # in dictionary order
            if not any(conflicts[a][b] for a, b in combinations(chosen, 2)):
                return chosen
    raise AssertionError


@pytest.mark.parametrize("seed", range(30))
def test_it_is_the_first_of_the_largest_sets(seed: int) -> None:
    chance = random.Random(seed)
    count, share = chance.randint(0, 9), chance.random()
    conflicts = [[False] * count for _ in range(count)]
    for a, b in combinations(range(count), 2):
        conflicts[a][b] = conflicts[b][a] = chance.random() < share
    assert largest_independent_set(conflicts) == _by_enumeration(conflicts)


def _cut(capacities: list[list[float]], side: frozenset[int]) -> float:
    away = set(range(len(capacities))) - side
    return sum(capacities[a][b] for a in side for b in away)


@pytest.mark.parametrize("seed", range(20))
def test_no_other_cut_is_smaller_and_no_smaller_side_is_as_good(seed: int) -> None:
    chance = random.Random(seed)
    count = chance.randint(2, 8)
    whole = seed % 2  # whole numbers make ties
    capacities = [
        [
            0.0 if a == b or chance.random() < 0.3 else (chance.randint(0, 3) if whole else chance.random())
            for b in range(count)
        ]
        for a in range(count)
    ]
    found = source_side(capacities, 0, 1)
    assert {0, 1} & found == {0}
    sides = [frozenset({0, *chosen}) for size in range(count - 1) for chosen in combinations(range(2, count), size)]
    least = min(_cut(capacities, side) for side in sides)
    assert _cut(capacities, found) == pytest.approx(least)
    assert len(found) == min(len(side) for side in sides if _cut(capacities, side) <= least + 1e-9)
