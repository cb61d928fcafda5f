"""No attack within the radius changes an answer of a small world; most worlds have one just beyond it (printed)."""

from __future__ import annotations

import random

import pytest

from robustrag_integrations import CallableModel, KeywordAggregation, MajorityVoting
from robustrag_integrations.errors import QuorumError
from tests.helpers.brute_force import Tally, attack_radius
from tests.helpers.scripted import BARE, BARE_CHOICES, ScriptedModel, split
from tests.helpers.worlds import (
    consensus_world,
    decoding_world,
    keyword_world,
    list_world,
    voting_world,
)


@pytest.mark.parametrize(
    ("make", "worlds", "largest", "most", "least", "tight"),
    [
        (keyword_world, 120, 2, 6000, 11_000, 0.99),
        (voting_world, 110, 3, 7000, 72_000, 0.99),
        (decoding_world, 100, 2, 500, 13_000, 0.8),
        (consensus_world, 300, 3, 1500, 100_000, 0.9),
        (list_world, 60, 2, 2000, 10_000, 0.9),
    ],
)
def test_no_attack_within_the_radius_changes_the_answer(make, worlds, largest, most, least, tight, capsys) -> None:
    tally = Tally()
    for seed in range(worlds):
        rng = random.Random(f"radius/{make.__name__}/{seed}")
        attack_radius(make(rng, agreeing=True), rng, tally, largest, most)
    with capsys.disabled():
        print(f"\n  radius, {tally.report(make.__name__)}")
    assert tally.violations == []
    assert tally.total.attacks >= least
    assert tally.total.reached > tight * tally.total.bounded


def test_the_quorum_bounds_the_radius_since_attackers_can_fail_on_purpose() -> None:
    model = ScriptedModel(lambda text: None if text == "!fails" else text)
    strict = KeywordAggregation(model, alpha=0.7, beta=9, extractor=split, prompts=BARE, quorum=1.0)
    loose = KeywordAggregation(model, alpha=0.7, beta=9, extractor=split, prompts=BARE, quorum=0.5)
    texts = ["a"] * 10
    assert loose.answer("q", texts).radius == 3
    assert strict.answer("q", texts).radius == 0
    with pytest.raises(QuorumError, match="9 of 10"):
        strict.answer("q", ["!fails", *texts[1:]])


def test_a_vote_won_by_the_tie_break_has_radius_zero() -> None:
    voting = MajorityVoting(CallableModel(lambda p: p[0]), prompts=BARE_CHOICES)
    tied = voting.answer("q", ["B", "A"], choices=["x", "y"])
    assert (tied.text, tied.radius) == ("x", 0)
    said = "a tie of 1 votes: 'x', 'y'; the option that comes first in the question wins"
    assert said in tied.warnings
    assert not any("tie" in w for w in voting.answer("q", ["B", "B", "A"], choices=["x", "y"]).warnings)
    ahead = voting.answer("q", ["A", "A", "A", "B"], choices=["x", "y"])
    assert (ahead.text, ahead.radius) == ("x", 1)  # 2 against 2 is still won by the first option
    behind = voting.answer("q", ["B", "B", "B", "A"], choices=["x", "y"])
    assert (behind.text, behind.radius) == ("y", 0)
