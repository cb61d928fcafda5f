"""Attacks on radii by the million, without the plan around what is counted: `tests/defenses/test_radius.py` has that.

Thresholds are attacked by arrays of replies, held against the definition; a consensus by the code that makes its text.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from robustrag_integrations.counting import Rule
from robustrag_integrations.defenses.consensus.defense import Outcome
from robustrag_integrations.defenses.consensus.settings import ConsensusSettings, Said
from robustrag_integrations.defenses.keyword.threshold import Tally
from robustrag_integrations.replies.keys import verdict_of
from tests.helpers.brute_force import same
from tests.helpers.scripted import BARE
from tests.helpers.small_tallies import WORDS, SmallTally, places_of
from tests.helpers.worlds import CONSENSUS_MOVES, VERDICTS, WORDINGS, Move


@dataclass
class Radii:
    """What came of attacks on radii.

    Attributes:
        worlds: how many answers were attacked.
        attacks: within their radii.
        limited: radii of fewer than all sources.
        reached: of these, those that an attack with one source more breaks.
        violations: attacks within a radius that changed the answer.
        tries: how often an attack beyond the radius is tried on each choice of sources.
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
            f"source more succeeds in {self.reached:,} of {self.limited:,} ({share:.1%})"
        )


def attack_threshold(found: Radii, rng: random.Random, draws: np.random.Generator, most: int = 768) -> None:
    """One world of a threshold, attacked within the radius and just beyond it."""
    world = SmallTally.random(rng)
    tally = Tally.of(world.sets, world.rule)
    radius = tally.radius()
    clean = world.kept(world.bits)
    assert tally.kept == tuple(w for w, kept in zip(WORDS, clean, strict=True) if kept)
    found.worlds += 1
    for places in places_of(len(world.sets), radius, draws, 6):
        replies = world.attacked(places, most, draws)
        found.attacks += len(replies)
        if (world.kept(replies) != clean).any():
            found.violations += ((world, radius, places),)
    if radius < len(world.sets):
        found.limited += 1
        beyond = (world.attacked(places, most, draws) for places in places_of(len(world.sets), radius + 1, draws, 40))
        found.reached += any((world.kept(replies) != clean).any() for replies in beyond)


@cache
def _said(counts: str, move: Move) -> Said | None:
    settings = ConsensusSettings(unsure=counts, prompts=BARE)  # type: ignore[arg-type]
    return settings.reading("q")(move.response).found


def attack_consensus(found: Radii, rng: random.Random, draws: np.random.Generator, most: int = 500) -> None:
    """One consensus, likewise; in half of the worlds replies begin with verdicts."""
    rule = Rule(rng.choice([1, 2, 2, 3]), rng.choice([0, 4, 4, 2]), verdict_of)
    counts, moves = rng.choice(["count", "count", "abstain"]), CONSENSUS_MOVES
    usual = rng.choice(WORDINGS)
    says = [usual] * 16 + [*WORDINGS] * 4 + ["Yoke"] * 6 + ["Zulu", "yoke.", "Xylo Yoke", "I don't know", None, ""]
    if rng.random() < 0.5:
        says, moves = [*["Yes"] * 8, *VERDICTS * 2, "Zulu", None], [*map(Move, (*VERDICTS, "Zulu", None))]
    clean = [Move(rng.choice(says), is_sure=rng.random() < 0.8) for _ in range(rng.randint(3, 9))]

    def consensus(moves: Sequence[Move]) -> Outcome:
        return Outcome.of([_said(counts, move) for move in moves], rule)

    seen = consensus(clean)
    radius, verbatim, text = seen.radius(), min(seen.radius(), seen.radius(verbatim=True)), seen.text
    found.worlds += 1

    def attacked(places: tuple[int, ...]) -> list[Move]:
        new = dict(zip(places, rng.choices(moves, k=len(places)), strict=True))
        return [new.get(place, move) for place, move in enumerate(clean)]

    for places in places_of(len(clean), radius, draws, 6):
        for _ in range(min(most, 2 * len(moves) ** len(places)) // 4):
            found.attacks += 1
            changed = consensus(given := attacked(places)).text
            to_the_letter = len(places) <= verbatim
            if not same(changed, text) or (to_the_letter and changed != text):
                found.violations += ((rule, clean, radius, given),)
    if radius < len(clean):
        found.limited += 1
        beyond = places_of(len(clean), radius + 1, draws, 12)
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
