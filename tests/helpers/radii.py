"""Attacks on radii by the million, without the plan around what is counted: `tests/defenses/test_radius.py` has that.

Thresholds are attacked by arrays of replies, held against the definition. Groups have one vote, or several.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from robustrag_integrations.defenses.keyword.threshold import Tally
from tests.helpers.small_tallies import WORDS, SmallTally, places_of


@dataclass
class Radii:
    """What came of attacks on radii.

    Attributes:
        worlds: how many answers were attacked.
        attacks: within their radii.
        limited: radii of fewer than all votes.
        reached: of these, those that an attack with one vote more breaks.
        violations: attacks within a radius that changed the answer.
        tries: how often an attack beyond the radius is tried on each choice of groups.
    """

    worlds: int = 0
    attacks: int = 0
    limited: int = 0
    reached: int = 0
    violations: tuple[Any, ...] = ()
    tries: int = 250

    def __str__(self) -> str:
        share = self.reached / max(self.limited, 1)
        return (
            f"{self.worlds:,} worlds, {self.attacks:,} attacks, {len(self.violations)} violations; an attack with one "
            f"vote more succeeds in {self.reached:,} of {self.limited:,} ({share:.1%})"
        )


def attack_threshold(found: Radii, rng: random.Random, draws: np.random.Generator, most: int = 768) -> None:
    """One world of a threshold, attacked within the radius and just beyond it."""
    world = SmallTally.random(rng, weighted=rng.random() < 0.5)
    tally = Tally.of(world.sets, world.rule, world.weights)
    radius = tally.radius()
    clean = world.kept(world.bits)
    assert tally.kept == tuple(w for w, kept in zip(WORDS, clean, strict=True) if kept)
    found.worlds += 1
    for places in places_of(world.votes, radius, draws, 6):
        replies = world.attacked(places, most, draws)
        found.attacks += len(replies)
        if (world.kept(replies) != clean).any():
            found.violations += ((world, radius, places),)
    if radius < sum(world.votes):
        found.limited += 1
        beyond = (world.attacked(places, most, draws) for places in places_of(world.votes, radius + 1, draws, 40))
        found.reached += any((world.kept(replies) != clean).any() for replies in beyond)


ATTACKS: dict[str, Callable[[Radii, random.Random, np.random.Generator], None]] = {
    "threshold": attack_threshold,
}


def attack(name: str, attacks: int, seed: str, tries: int = 250) -> Radii:
    """Attack worlds until there are enough attacks, or a violation; `tries` as in `Radii`."""
    found, number = Radii(tries=tries), 0
    while found.attacks < attacks and not found.violations:
        rng = random.Random(f"{seed}/{name}/{number}")
        ATTACKS[name](found, rng, np.random.default_rng(rng.getrandbits(32)))
        number += 1
    return found
