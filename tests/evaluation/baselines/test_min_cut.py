"""The smallest cut, against all ways of cutting."""

from __future__ import annotations

import random
from itertools import combinations

import pytest

from robustrag_integrations.evaluation.baselines.radar import source_side


def _cut(capacities: list[list[float]], side: frozenset[int]) -> float:
    away = set(range(len(capacities))) - side
    return sum(capacities[a][b] for a in side for b in away)


@pytest.mark.parametrize("seed", range(40))
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
