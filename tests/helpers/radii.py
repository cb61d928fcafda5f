"""Attacks on radii by the million, without the plan around what is counted: `tests/defenses/test_radius.py` has that.

Thresholds are attacked by arrays of replies, held against the definition; a consensus by the code that makes
its text. Groups have one vote, or several.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from robustrag_integrations.defenses.agreement.reader import ReplyReader
from robustrag_integrations.defenses.consensus.plan import Consensus
from robustrag_integrations.defenses.consensus.settings import ConsensusSettings
from robustrag_integrations.defenses.keyword.threshold import Tally
from robustrag_integrations.models.base import Response
from tests.helpers.brute_force import same
from tests.helpers.scripted import BARE
from tests.helpers.small_tallies import WORDS, SmallTally, places_of
from tests.helpers.worlds import CONSENSUS_MOVES, folded_words


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
def _settings(share: float, min_support: int, own: bool) -> ConsensusSettings:
    extractor = folded_words if own else None
    return ConsensusSettings.of(share=share, min_support=min_support, extractor=extractor, prompts=BARE)


@cache
def _reader(own: bool) -> ReplyReader:
    return _settings(0.5, 2, own).reader.for_question("q")


@cache
def _reading(own: bool, reply: str | None) -> Any:
    return _reader(own).read(Response(reply, error=None if reply is not None else "no"))


def attack_consensus(found: Radii, rng: random.Random, draws: np.random.Generator, most: int = 500) -> None:
    """One consensus, likewise."""
    rule = rng.choice([0.5, 0.5, 0.6, 0.7]), rng.choice([1, 2, 2, 3])
    own = rng.random() < 0.4  # keywords of a user's extractor; else runs of words
    says = ["a b"] * 40 + ["a"] * 3 + ["b a", "a x b", "A", "A b", "b", "c", "b c", "I don't know", None, ""]
    replies = [rng.choice(says) for _ in range(rng.randint(3, 9))]
    weights = [rng.choice([1, 1, 2, 3]) if rng.random() < 0.5 else 1 for _ in replies]

    def consensus(given: list[str | None]) -> Consensus:
        return Consensus.of([_reading(own, reply) for reply in given], _settings(*rule, own), _reader(own), weights)

    seen = consensus(replies)
    radius, verbatim, text = max(0, seen.radius()), max(0, seen.radius(verbatim=True)), seen.text
    found.worlds += 1

    def attacked(places: tuple[int, ...]) -> list[str | None]:
        said: list[Any] = rng.choices(CONSENSUS_MOVES, k=len(places))
        new = dict(zip(places, said, strict=True))
        return [new.get(place, reply) for place, reply in enumerate(replies)]

    for places in places_of(weights, radius, draws, 6):
        for _ in range(min(most, 2 * len(CONSENSUS_MOVES) ** len(places)) // 4):
            found.attacks += 1
            changed = consensus(given := attacked(places)).text
            to_the_letter = sum(weights[place] for place in places) <= verbatim
            if not same(changed, text) or (to_the_letter and changed != text):
                found.violations += ((rule, replies, weights, radius, given),)
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
