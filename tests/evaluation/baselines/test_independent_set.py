"""The largest set of answers without a contradiction, against all subsets."""

from __future__ import annotations

import random
from itertools import combinations

import pytest

from robustrag_integrations.evaluation.baselines.mis import LARGEST, largest_independent_set


def _by_enumeration(conflicts: list[list[bool]]) -> tuple[int, ...]:
    places = range(len(conflicts))
    for size in range(len(conflicts), -1, -1):
        for chosen in combinations(places, size):  # in dictionary order
            if not any(conflicts[a][b] for a, b in combinations(chosen, 2)):
                return chosen
    raise AssertionError


@pytest.mark.parametrize("seed", range(60))
def test_it_is_the_first_of_the_largest_sets(seed: int) -> None:
    chance = random.Random(seed)
    count, share = chance.randint(0, 9), chance.random()
    conflicts = [[False] * count for _ in range(count)]
    for a, b in combinations(range(count), 2):
        conflicts[a][b] = conflicts[b][a] = chance.random() < share
    assert largest_independent_set(conflicts) == _by_enumeration(conflicts)


def test_better_ranks_decide_among_equals() -> None:
    pairs = [[i // 2 == j // 2 and i != j for j in range(6)] for i in range(6)]
    assert largest_independent_set(pairs) == (0, 2, 4)


def test_the_largest_number_of_answers_is_searched_at_once_and_more_are_refused() -> None:
    ring = [[abs(i - j) in (1, LARGEST - 1) for j in range(LARGEST)] for i in range(LARGEST)]
    assert largest_independent_set(ring) == tuple(range(0, LARGEST, 2))
    with pytest.raises(ValueError, match="21 answers are too many"):
        largest_independent_set([[False] * 21] * 21)
