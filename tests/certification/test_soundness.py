"""No attack in a small world goes below tau or leaves R: zero violations, and the tightness printed."""

from __future__ import annotations

import random

import pytest

from tests.helpers.brute_force import Tally, attack_certificates
from tests.helpers.worlds import consensus_world, decoding_world, keyword_world, list_world, voting_world


@pytest.mark.parametrize(
    ("make", "worlds", "least"),
    [
        (keyword_world, 150, 19_000),
        (voting_world, 200, 12_000),
        (decoding_world, 60, 17_000),
        (consensus_world, 240, 6_000),
        (list_world, 120, 6_000),
    ],
)
def test_no_attack_goes_below_tau_or_causes_a_response_outside_r(make, worlds, least, capsys) -> None:
    tally = Tally()
    for seed in range(worlds):
        rng = random.Random(f"{make.__name__}/{seed}")
        attack_certificates(make(rng), rng, tally, placements=16, replies=60)
    with capsys.disabled():
        print(f"\n  {tally.report(make.__name__)}")
    assert tally.violations == []
    assert tally.total.attacks >= least
    assert tally.total.positive > worlds / 5
    assert tally.total.reached > 0.5 * tally.total.bounded
