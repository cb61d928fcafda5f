"""Thresholds relative to the strongest keyword: what is kept, and that radius and certificate hold by brute force."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest

from robustrag_integrations.defenses.keyword.certificate import keyword_span
from robustrag_integrations.defenses.keyword.counting import tally_keywords
from robustrag_integrations.defenses.keyword.relative import RelativeThreshold
from robustrag_integrations.defenses.keyword.spans import retained_sets
from tests.helpers.radii import attack
from tests.helpers.scripted import keyword_defense
from tests.helpers.small_tallies import WORDS, SmallTally


def retained(*said: str | None, share: float = 0.5, min_support: int = 2) -> tuple[str, ...]:
    sets = [None if s is None else set(s.split()) for s in said]
    return tally_keywords(sets, RelativeThreshold.of(share, min_support)).retained


def test_more_than_a_share_of_the_strongest_is_kept_whatever_the_number_of_groups() -> None:
    assert retained("a b", "a b", "a", "a c", "c") == ("a",)  # two of four are not more than half
    assert retained("a b", "a b", "a b", "a c", "c") == ("a", "b")
    assert retained(*["a"] * 7, *["z"] * 3) == ("a",)
    assert retained(*["a"] * 5, *["z"] * 3) == ("a", "z")
    assert retained(*["a"] * 2, *[None] * 8) == ("a",)


def test_what_too_few_say_is_not_kept() -> None:
    assert retained("a", "b", "c") == ()
    assert retained("a", "a", "b", min_support=3) == ()
    assert retained() == ()


def test_shares_are_exact() -> None:
    said = ["w x"] * 7 + ["w"] * 3
    assert retained(*said, share=0.7) == ("w",)
    assert retained(*said, share=0.69) == ("w", "x")


def test_no_attack_within_the_radius_changes_what_is_retained() -> None:
    found = attack("relative", 200_000, "ci")
    print(found)
    assert found.violations == ()
    assert found.reached >= 0.9 * found.limited


def test_an_error_planted_in_the_radius_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    from robustrag_integrations.defenses.keyword.relative_radius import RelativeRadius

    for name in ("_stays", "_stays_away"):
        with monkeypatch.context() as planted:
            planted.setattr(RelativeRadius, name, lambda *a: True)
            assert attack("relative", 50_000, "planted").violations, name


def test_everything_that_can_be_retained_is_enumerated_and_nothing_else() -> None:
    """Against every reply of the corrupted groups, over words that groups say and one that nobody says."""
    rng = random.Random(11)
    enumerated = open_ended = 0
    for _ in range(200):
        world = SmallTally.random(rng)
        corrupted = rng.randint(0, 2)
        span = keyword_span(world.sets, corrupted, world.rule)
        new = np.array([*itertools.product((0, 1), repeat=corrupted * len(WORDS))], np.int64)
        sayings = new.reshape(len(new), corrupted, len(WORDS))
        untouched = np.repeat(world.bits[None], len(new), axis=0)
        kept = np.unique(world.kept(np.concatenate([untouched, sayings], axis=1), corrupted), axis=0)
        possible = {tuple(w for w, k in zip(WORDS, row, strict=True) if k) for row in kept}
        assert span.unbounded == any("x" in one for one in possible), world
        if not span.unbounded:
            found = list(retained_sets(span))
            assert len(found) == len(set(found))
            assert set(found) == possible, (world, corrupted)
            enumerated += len(found)
        open_ended += span.unbounded
    assert enumerated > 250
    assert open_ended > 20


def test_a_certificate_names_the_share_where_too_much_is_possible() -> None:
    passages = [f"p{i}" for i in range(8)]
    contested = " ".join(f"w{i}" for i in range(12))
    says = lambda text: f"paris {contested}" if text in ("p0", "p1", "p2") else "paris"  # noqa: E731
    found = keyword_defense(says, threshold="relative").certify("q", passages, "paris", max_model_calls=50)
    assert not found.certified
    assert "raise share= or min_support=" in (found.stopped or "")


def test_corrupted_groups_with_more_than_the_share_are_open_ended() -> None:
    defense = keyword_defense(lambda text: "paris", threshold="relative", quorum=0)
    found = defense.certify("q", ["p0", "p1", "p2"], "paris", corruption_size=2)
    assert (found.tau, found.unbounded) == (0, True)
    assert "2 corrupted groups alone can reach the threshold of 2" in (found.stopped or "")


def test_a_certificate_holds_against_what_the_paper_s_default_falls_to() -> None:
    passages = [f"p{i}" for i in range(10)]
    relative = keyword_defense(lambda text: "paris", threshold="relative")
    absolute = keyword_defense(lambda text: "paris", alpha=0.3, beta=3)
    sizes = [1, 2, 3, 4]
    held = [
        [found.tau for found in made.certify("q", passages, "paris", corruption_size=sizes)]
        for made in (relative, absolute)
    ]
    assert held == [[1, 1, 1, 0], [1, 1, 0, 0]]
