"""The count of whole answers, attacked by an engine of its own: nothing here knows how a radius is computed.

A world has groups that say a key or nothing, votes, and a table of how likely each group finds each key, one that
nobody gives yet among them. The attacker replaces groups: what they say, and what they find likelier.
"""

from __future__ import annotations

import itertools
import random
from dataclasses import dataclass, replace

import pytest

from robustrag_integrations.counting import plurality
from robustrag_integrations.counting.plurality import Count, Rule, possible_winners

KEYS = ("a", "b", "c", "new")
NOISE = 0.1


@dataclass(frozen=True)
class World:
    """What groups say, their votes, and how likely each group finds each key (None: it has no view)."""

    said: tuple[str | None, ...]
    weights: tuple[int, ...]
    rule: Rule
    likely: dict[str, tuple[float | None, ...]]
    scored: bool = True

    def counted(self) -> Count[str]:
        """What inference does: it counts, and has the keys scored that matter."""
        count = Count(self.said, self.weights, self.rule)
        asked = count.worth_scoring() if self.scored else ()
        return replace(count, scores={key: self.likely[key] for key in asked}) if asked else count

    @property
    def winner(self) -> str | None:
        """Who wins: scores matter to ties alone."""
        count = Count(self.said, self.weights, self.rule)
        if not (self.scored and len(count.tied) > 1):
            return count.winner
        return replace(count, scores={key: self.likely[key] for key in count.tied}).winner

    def attacked(self, places: tuple[int, ...], moves: tuple[tuple[str | None, int], ...]) -> World:
        said, likely = list(self.said), {key: list(row) for key, row in self.likely.items()}
        for place, (key, favourite) in zip(places, moves, strict=True):
            said[place] = key
            for at, row in enumerate(likely.values()):
                row[place] = -1.0 if at == favourite else -5.0
        return replace(self, said=tuple(said), likely={key: tuple(row) for key, row in likely.items()})


def a_world(draw: random.Random) -> World:
    groups = draw.randint(1, 7)
    said = tuple(draw.choice(["a", "a", "a", "b", "b", "c", None][: draw.choice([3, 5, 6, 7])]) for _ in range(groups))
    weights = tuple(draw.choice([1, 1, 1, 2, 3]) if draw.random() < 0.3 else 1 for _ in range(groups))
    rule = Rule(draw.choice([1, 2, 2, 3]), draw.choice([0, 4, 4, 2]), NOISE)
    favour = draw.choice(KEYS)
    likely = {
        key: tuple(
            None if draw.random() < 0.1 else round(draw.uniform(-11, 0) + 4 * (key == favour), 2) for _ in range(groups)
        )
        for key in KEYS
    }
    return World(said, weights, rule, likely, draw.random() < 0.8)


def moves_of(world: World, count: int) -> list[tuple[tuple[str | None, int], ...]]:
    """What `count` replaced groups may do: each says a key or nothing, and prefers the first or the second key."""
    return list(itertools.product([(key, favourite) for key in (*KEYS, None) for favourite in (0, 1)], repeat=count))


def attack(worlds: int, seed: str) -> tuple[int, list[str], int, int]:
    """Attack the radius of each world; returns attacks, violations, radii that are too small, and radii at all."""
    attacks, violations, small, radii = 0, [], 0, 0
    for number in range(worlds):
        draw = random.Random(f"{seed}/{number}")
        world = a_world(draw)
        count = world.counted()
        if count.winner is None:
            continue
        radius = count.radius()
        for replaced in range(min(3, len(world.said)) + 1):
            beyond, found = replaced == radius + 1, False
            if replaced > radius + 1:
                break
            for places in itertools.combinations(range(len(world.said)), replaced):
                if sum(world.weights[p] for p in places) != replaced:
                    continue
                moves = moves_of(world, replaced)
                for chosen in moves if len(moves) <= 100 else draw.sample(moves, 40):
                    attacks += 1
                    other = world.attacked(places, chosen)
                    if other.winner != count.winner:
                        found = True
                        if not beyond:
                            violations.append(f"{world}: {places} {chosen} -> {other.winner}, radius {radius}")
            plain = all(weight == 1 for weight in world.weights)
            if beyond and plain and replaced <= 2:
                radii += 1
                small += not found
    return attacks, violations, small, radii


def test_no_attack_within_the_radius_changes_the_winner(capsys: pytest.CaptureFixture[str]) -> None:
    attacks, violations, small, radii = attack(400, "plurality")
    with capsys.disabled():
        print(f"\n  {attacks:,} attacks, {len(violations)} violations; radius too small in {small} of {radii}")
    assert violations == []
    assert attacks >= 100_000
    assert small <= 0.02 * radii


@pytest.mark.parametrize("error", ["radius", "support", "fresh", "preferences"])
def test_a_planted_error_is_caught(error: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if error == "radius":
        real = Count.radius
        monkeypatch.setattr(Count, "radius", lambda self, pending=0: real(self, pending) + 1)
    elif error == "support":
        real_holding = Count.holding
        lenient = lambda self, *a, **_: real_holding(replace(self, rule=replace(self.rule, min_support=1)), *a)  # noqa: E731
        monkeypatch.setattr(Count, "holding", lenient)
    elif error == "fresh":  # a tie is taken for a win
        monkeypatch.setattr(plurality, "_LOST_TIE", -1)
    else:  # a replaced group is thought to lose its vote and to add nothing
        monkeypatch.setattr(plurality, "_REPLACED", 0)
    assert attack(300, "plurality")[1]


def test_pending_votes_count_as_anything() -> None:
    for number in range(400):
        draw = random.Random(f"pending/{number}")
        world = replace(a_world(draw), scored=False)
        heard = draw.randint(0, len(world.said))
        known = Count(world.said[:heard], world.weights[:heard], world.rule)
        radius = known.radius(sum(world.weights[heard:]))
        if known.winner is None or radius < 0:
            continue
        for rest in itertools.product((*KEYS, None), repeat=min(3, len(world.said) - heard)):
            said = (*world.said[:heard], *rest, *world.said[heard + len(rest) :])
            assert Count(said, world.weights, world.rule).winner == known.winner


def test_every_winner_next_to_corrupted_groups_is_found() -> None:
    for number in range(600):
        draw = random.Random(f"winners/{number}")
        world = replace(a_world(draw), weights=())
        corrupted = draw.randint(0, 2)
        winners, none, new = possible_winners(world.said, world.rule, corrupted)
        for said in itertools.product(("a", "b", "c", "new", None), repeat=corrupted):
            likely = {k: (*row, *(draw.choice([-1.0, -5.0]) for _ in said)) for k, row in world.likely.items()}
            keys = (*world.said, *said)
            found = World(keys, (1,) * len(keys), world.rule, likely, world.scored).winner
            assert found in winners or (found is None and none) or (found not in world.said and new), (world, said)


@pytest.mark.parametrize(
    ("said", "rule", "winner", "tied", "radius"),
    [
        ("aab", Rule(2), "a", "", 0),
        ("aaaa", Rule(2), "a", "", 1),
        ("aabb", Rule(2), None, "ab", 0),
        ("ab", Rule(1), None, "ab", 0),
        ("aabc", Rule(2, 2), None, "a", 0),
        ("aaabcdefg", Rule(2, 4), "a", "", 0),
        ("aaaabcde", Rule(2, 4), "a", "", 1),
        ("aabbcdefg", Rule(2, 4), None, "ab", 0),
    ],
)
def test_what_wins(said: str, rule: Rule, winner: str | None, tied: str, radius: int) -> None:
    count = Count(tuple(said), (1,) * len(said), rule)
    assert (count.winner, count.tied, count.radius()) == (winner, tuple(tied), radius)
