"""No attack within the radius changes an answer of a small world; most worlds have one just beyond it (printed)."""

from __future__ import annotations

import random

import pytest

from robustrag_integrations import CallableModel, KeywordAggregation, MajorityVoting, Passage
from robustrag_integrations._util.errors import QuorumError
from tests.helpers.brute_force import Tally, attack_radius
from tests.helpers.radii import attack
from tests.helpers.scripted import BARE, BARE_CHOICES, ScriptedModel, split
from tests.helpers.worlds import consensus_world, decoding_world, keyword_world, list_world, voting_world


@pytest.mark.parametrize(
    ("make", "worlds", "largest", "most", "least", "tight"),
    [
        (keyword_world, 120, 2, 6000, 11_000, 0.99),
        (voting_world, 90, 3, 7000, 40_000, 0.99),
        (decoding_world, 100, 2, 500, 13_000, 0.8),
        (consensus_world, 70, 3, 250, 10_000, 0.9),
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


def test_no_attack_within_the_radius_changes_a_consensus(capsys) -> None:
    found = attack("consensus", 100_000, "ci")
    with capsys.disabled():
        print(f"\n  radius, consensus: {found}")
    assert found.violations == ()
    assert found.reached > 0.9 * found.limited  # each is looked for by some random attacks


def test_a_tie_of_options_is_no_answer_and_is_told() -> None:
    voting = MajorityVoting(CallableModel(lambda p: p[0]), prompts=BARE_CHOICES)
    passages = [Passage(letter, origin=f"{place}.md") for place, letter in enumerate("BACA")]
    tied = voting.answer("q", passages[:2], choices=["x", "y"])
    assert (tied.text, tied.abstained, tied.choice, tied.radius) == (
        "The sources say:\n- 0.md: y\n- 1.md: x",
        True,
        None,
        0,
    )
    assert "no answer: 2 options have 1 vote each" in tied.warnings
    bare = MajorityVoting(CallableModel(lambda p: p[0]), prompts=BARE_CHOICES, disagreement="abstain")
    assert bare.answer("q", passages[:2], choices=["x", "y"]).text == "I don't know"
    assert tied.for_prompt().text == "I don't know"
    for letters, told in [
        ("AAABBBC", "- 0.md, 1.md, 2.md: x\n- 3.md, 4.md, 5.md: y\n- 6.md: z"),
        ("ABC", "- 0.md: x\n- 1.md: y\n- 2.md: z"),
    ]:
        sources = [Passage(letter, origin=f"{place}.md") for place, letter in enumerate(letters)]
        assert voting.answer("q", sources, choices=["x", "y", "z"]).text == f"The sources say:\n{told}"
