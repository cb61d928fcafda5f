"""Attacks on radii by the million, without the plan around what is counted: `tests/defenses/test_radius.py` has that.

Thresholds are attacked by arrays of replies, held against the definition; a consensus by the code that makes its text.
Groups have one vote, or several.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from robustrag_integrations.counting.plurality import Rule
from robustrag_integrations.defenses.consensus.defense import Outcome
from robustrag_integrations.defenses.consensus.settings import ConsensusSettings, Said
from robustrag_integrations.defenses.keyword.threshold import Tally
from tests.helpers.brute_force import same
from tests.helpers.scripted import BARE
from tests.helpers.small_tallies import WORDS, SmallTally, places_of
from tests.helpers.worlds import CONSENSUS_MOVES, WORDINGS, Move


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


@cache
def _said(counts: str, move: Move) -> Said | None:
    settings = ConsensusSettings(unsure=counts, prompts=BARE)  # type: ignore[arg-type]
    return settings.reading("q")(move.response).found


def _outcome(moves: Sequence[Move], rule: Rule, counts: str, weights: Sequence[int], *, in_full: bool) -> Outcome:
    """What the plan makes of these moves; with `in_full` also the scores that matter to nothing but the radius."""
    outcome = Outcome.of([_said(counts, move) for move in moves], rule, weights)
    if not (in_full or outcome.count.tied):
        return outcome
    keys = outcome.count.worth_scoring()
    return outcome.scored({key: [move.scores([key])[0] for move in moves] for key in keys})


def attack_consensus(found: Radii, rng: random.Random, draws: np.random.Generator, most: int = 500) -> None:
    """One consensus of groups with one vote or several, in half of the worlds with a runoff, likewise."""
    rule = Rule(rng.choice([1, 2, 2, 3]), rng.choice([0, 4, 4, 2]))
    counts, runoff = rng.choice(["count", "count", "abstain"]), rng.random() < 0.5
    usual, likeliest = rng.choice(WORDINGS), rng.choice(["xylo", "yoke"])
    says = [usual] * 16 + [*WORDINGS] * 4 + ["Yoke"] * 6 + ["Zulu", "yoke.", "Xylo Yoke", "I don't know", None, ""]
    clean = [
        Move(rng.choice(says), is_sure=rng.random() < 0.8, favours=likeliest if rng.random() < 0.7 else "yoke")
        for _ in range(rng.randint(3, 9))
    ]
    weights = [rng.choice([1, 1, 2, 3]) if rng.random() < 0.5 else 1 for _ in clean]

    def consensus(moves: Sequence[Move]) -> Outcome:
        if not runoff:
            return Outcome.of([_said(counts, move) for move in moves], rule, weights)
        return _outcome(moves, rule, counts, weights, in_full=moves is clean)

    seen = consensus(clean)
    radius, verbatim, text = seen.radius(), min(seen.radius(), seen.radius(verbatim=True)), seen.text
    found.worlds += 1

    def attacked(places: tuple[int, ...]) -> list[Move]:
        new = dict(zip(places, rng.choices(CONSENSUS_MOVES, k=len(places)), strict=True))
        return [new.get(place, move) for place, move in enumerate(clean)]

    for places in places_of(weights, radius, draws, 6):
        for _ in range(min(most, 2 * len(CONSENSUS_MOVES) ** len(places)) // 4):
            found.attacks += 1
            changed = consensus(given := attacked(places)).text
            to_the_letter = sum(weights[place] for place in places) <= verbatim
            if not same(changed, text) or (to_the_letter and changed != text):
                found.violations += ((rule, clean, weights, radius, given),)
    if radius < sum(weights):
        found.limited += 1
        beyond = places_of(weights, radius + 1, draws, 12)
        found.reached += any(
            not same(consensus(attacked(places)).text, text) for places in beyond for _ in range(found.tries)
        )


ATTACKS: dict[str, Callable[[Radii, random.Random, np.random.Generator], None]] = {
    "threshold": attack_threshold,
    "consensus": attack_consensus,
}


def attack(name: str, attacks: int, seed: str, tries: int = 250) -> Radii:
    """Attack worlds until there are enough attacks, or a violation; `tries` as in `Radii`."""
    found, number = Radii(tries=tries), 0
    while found.attacks < attacks and not found.violations:
        rng = random.Random(f"{seed}/{name}/{number}")
        ATTACKS[name](found, rng, np.random.default_rng(rng.getrandbits(32)))
        number += 1
    return found
