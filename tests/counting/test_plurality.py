"""The count of whole answers, attacked by an engine of its own: nothing here knows how a radius is computed.

A world has sources that say a key or nothing; some keys begin with a verdict. The attacker replaces sources by others
that say any key, one that nobody gives yet among them.
"""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import pytest

from robustrag_integrations import counting
from robustrag_integrations.counting import Count, Rule, possible_winners

KEYS = ("yes", "yes, all", "no", "no, none", "a", "new")
Said = tuple[str | None, ...]


def side(key: str) -> str | None:
    first = key.partition(",")[0]
    return first if first in ("yes", "no") else None


@dataclass(frozen=True)
class World:
    """What sources say, and the rule."""

    said: Said
    rule: Rule

    def winner(self, said: Sequence[str | None]) -> str | None:
        """Who wins, from the words of the rule."""
        votes = Counter(key for key in said if key is not None)
        for key, count in votes.items():
            others = [n for other, n in votes.items() if other != key]
            opposite = {"yes": "no", "no": "yes"}.get(side(key) or "")
            against = sum(n for other, n in votes.items() if opposite is not None and side(other) == opposite)
            share = not self.rule.one_in or self.rule.one_in * count > votes.total()
            if count > max(others, default=0) and count > against and count >= self.rule.min_support and share:
                return key
        return None


def a_world(draw: random.Random) -> World:
    keys = ["yes"] * draw.choice([2, 4, 8]) + [*KEYS[:5], None]
    if draw.random() < 0.3:
        keys = ["a"] * 6 + ["new", "new", "no", None]
    said = tuple(draw.choice(keys) for _ in range(draw.randint(1, 8)))
    return World(said, Rule(draw.choice([1, 2, 2, 3]), draw.choice([0, 4, 4, 2]), side))


def attack(worlds: int, seed: str) -> tuple[int, list[str], int, int]:
    """Attack the radius of each world; returns attacks, violations, radii that are too small, and radii at all."""
    attacks, violations, small, radii = 0, [], 0, 0
    for number in range(worlds):
        draw = random.Random(f"{seed}/{number}")
        world = a_world(draw)
        count = Count(world.said, world.rule)
        if count.winner is None:
            continue
        radius = count.radius()
        for replaced in range(min(3, len(world.said), radius + 1) + 1):
            found = False
            for places in itertools.combinations(range(len(world.said)), replaced):
                moves = list(itertools.product((*KEYS, None), repeat=replaced))
                for chosen in moves if len(moves) <= 50 else draw.sample(moves, 40):
                    attacks += 1
                    new = dict(zip(places, chosen, strict=True))
                    other = world.winner([new.get(place, key) for place, key in enumerate(world.said)])
                    if other != count.winner:
                        found = True
                        if replaced <= radius:
                            violations.append(f"{world}: {new} -> {other}, radius {radius}")
            if replaced == radius + 1 <= 2:
                radii += 1
                small += not found
    return attacks, violations, small, radii


def test_no_attack_within_the_radius_changes_the_winner(capsys: pytest.CaptureFixture[str]) -> None:
    attacks, violations, small, radii = attack(700, "plurality")
    with capsys.disabled():
        print(f"\n  {attacks:,} attacks, {len(violations)} violations; radius too small in {small} of {radii}")
    assert violations == []
    assert attacks >= 100_000
    assert small <= 0.02 * radii


@pytest.mark.parametrize("error", ["radius", "support", "replaced", "verdict"])
def test_a_planted_error_is_caught(error: str, monkeypatch: pytest.MonkeyPatch) -> None:
    real, real_holding = Count.radius, Count.holding
    if error == "radius":
        monkeypatch.setattr(Count, "radius", lambda self, pending=0: real(self, pending) + 1)
    elif error == "replaced":  # a replaced source is thought to lose its vote and to add nothing
        monkeypatch.setattr(counting, "_REPLACED", 0)
    else:
        change = {"min_support": 1} if error == "support" else {"verdict": Rule().verdict}
        lenient = lambda self, *a, **_: real_holding(replace(self, rule=replace(self.rule, **change)), *a)  # noqa: E731
        monkeypatch.setattr(Count, "holding", lenient)
    assert attack(300, "plurality")[1]


def test_pending_votes_count_as_anything() -> None:
    for number in range(400):
        draw = random.Random(f"pending/{number}")
        world = a_world(draw)
        pending = draw.randint(0, min(3, len(world.said)))
        heard = world.said[: len(world.said) - pending]
        known = Count((*heard, *[None] * pending), world.rule)
        if known.winner is None or known.radius(pending) < 0:
            continue
        for rest in itertools.product((*KEYS, None), repeat=pending):
            assert world.winner((*heard, *rest)) == known.winner


def test_every_winner_next_to_corrupted_sources_is_found_and_no_other() -> None:
    for number in range(600):
        draw = random.Random(f"winners/{number}")
        world = a_world(draw)
        corrupted = draw.randint(0, 3)
        winners, none, new = possible_winners(world.said, world.rule, corrupted)
        found = {world.winner((*world.said, *said)) for said in itertools.product((*KEYS, None), repeat=corrupted)}
        said = set(world.said)
        assert found - {None} - said == set() or new, world
        assert found & said - {None} == winners, world
        assert None not in found or none, world
        assert new <= ("new" in found or "new" in said), world


@pytest.mark.parametrize(
    ("said", "rule", "winner", "tied", "radius"),
    [
        ("a a b", Rule(2), "a", "", 0),
        ("a a a a", Rule(2), "a", "", 1),
        ("a a b b", Rule(2), None, "a b", 0),
        ("a b", Rule(1), None, "a b", 0),
        ("a a b c", Rule(2, 2), None, "a", 0),
        ("a a a b c d e f g", Rule(2, 4), "a", "", 0),
        ("a a a a b c d e", Rule(2, 4), "a", "", 1),
        ("a a b b c d e f g", Rule(2, 4), None, "a b", 0),
        ("yes yes-1 yes-2 no no", Rule(2), None, "no", 0),
        ("yes yes no-1 no-2 a", Rule(2), None, "yes", 0),
        ("yes yes yes yes yes no-1 a", Rule(2), "yes", "", 1),
        ("a a yes no", Rule(2), "a", "", 0),
    ],
)
def test_what_wins(said: str, rule: Rule, winner: str | None, tied: str, radius: int) -> None:
    rule = replace(rule, verdict=lambda key: key.partition("-")[0] if key[:2] in ("ye", "no") else None)
    count = Count(tuple(said.split()), rule)
    assert (count.winner, count.tied, count.radius()) == (winner, tuple(tied.split()), radius)
