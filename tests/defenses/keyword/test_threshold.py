"""The threshold min(alpha n, beta): what is kept, and that radius and certificate hold by brute force."""

from __future__ import annotations

import itertools
import random
from fractions import Fraction

import numpy as np
import pytest

from robustrag_integrations.defenses.keyword.defense import keyword_span
from robustrag_integrations.defenses.keyword.threshold import Tally, Threshold
from tests.helpers.radii import attack
from tests.helpers.small_tallies import WORDS, SmallTally, silenced


def kept(*said: str | None, alpha: float = 0.5, beta: int | None = None) -> tuple[str, ...]:
    sets = [None if s is None else set(s.split()) for s in said]
    return Tally.of(sets, Threshold(Fraction(str(alpha)), beta)).kept


def test_at_least_a_share_of_those_that_answer_is_kept() -> None:
    assert kept("a b", "a b", "a", "a c", "c") == ("a",)
    assert kept("a b", "a b", "a", "c") == ("a", "b")
    assert kept(*["a"] * 2, *[None] * 8) == ("a",)
    assert kept() == ()


def test_beta_is_enough_in_any_case() -> None:
    assert kept(*["a"] * 3, *["b"] * 7, alpha=0.5, beta=3) == ("a", "b")


def test_shares_are_exact() -> None:
    said = ["w x"] * 7 + ["w"] * 3
    assert kept(*said, alpha=0.7) == ("w", "x")
    assert kept(*said, alpha=0.71) == ("w",)


def test_no_attack_within_the_radius_changes_what_is_kept() -> None:
    found = attack("threshold", 200_000, "ci")
    print(found)
    assert found.violations == ()
    assert found.reached >= 0.9 * found.limited


@pytest.mark.parametrize("name", ["_stay", "_stay_away"])
def test_an_error_planted_in_the_radius_is_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Threshold, name, lambda self, *rest: np.ones(rest[2] + 1, bool))
    assert attack("threshold", 50_000, "planted").violations


def test_votes_that_are_pending_may_say_anything() -> None:
    rng = random.Random(5)
    said = [*map(frozenset, ["", "a", "b", "x", "ab", "ax", "abcdxy"]), None]
    for _ in range(150):
        world = SmallTally.random(rng)
        tally = Tally.of(world.sets, world.rule)
        for pending in (1, 2):
            changed = any(
                Tally.of([*world.sets, *more], world.rule).kept != tally.kept
                for more in itertools.product(said, repeat=pending)
            )
            assert tally.radius(pending) < 0 or not changed, world


def test_everything_that_can_be_retained_is_enumerated() -> None:
    """Against every reply of the corrupted sources, over words that sources say and one that nobody says."""
    rng = random.Random(11)
    enumerated = reached = open_ended = 0
    for _ in range(200):
        world = SmallTally.random(rng)
        corrupted = rng.randint(0, 2)
        span = keyword_span(world.sets, corrupted, world.rule)
        each = len(WORDS) + 1
        new = np.array([*itertools.product((0, 1), repeat=corrupted * each)], np.int64)
        sayings = silenced(new.reshape(len(new), corrupted, each))
        untouched = np.repeat(world.bits[None], len(new), axis=0)
        rows = np.unique(world.kept(np.concatenate([untouched, sayings], axis=1)), axis=0)
        possible = {tuple(w for w, k in zip(WORDS, row, strict=True) if k) for row in rows}
        assert span.unbounded == any("x" in one for one in possible), world
        if not span.unbounded:
            found = list(span.sets())
            assert len(found) == len(set(found)) == 2 ** len(span.contested)
            assert set(found) >= possible, (world, corrupted)
            enumerated += len(found)
            reached += len(possible)
        open_ended += span.unbounded
    assert enumerated > 200
    assert reached == enumerated
    assert open_ended > 20
