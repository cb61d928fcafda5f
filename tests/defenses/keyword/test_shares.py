"""Shares among counts: the same comparisons with small numbers, and radii that stand by them."""

from __future__ import annotations

import random
from fractions import Fraction

import pytest

from robustrag_integrations import CallableModel, KeywordAggregation, Passage, RobustAnswer
from robustrag_integrations.defenses.keyword.threshold import among_counts, exact_number
from tests.helpers.scripted import BARE, split

FINE = [1 / 3, 2 / 3, 1 / 30, 0.07 / 7.3, Fraction(0.3), Fraction(1, 10**30), 1 - Fraction(1, 10**30), 1e-20]


def shares() -> list[Fraction]:
    rng = random.Random(0)
    found = [exact_number(share) for share in FINE]
    for _ in range(300):
        of = rng.randrange(1, 30)
        near = Fraction(rng.randrange(of), of)
        found += [Fraction(str(rng.random())), near, near + Fraction(1, 10 ** rng.randrange(3, 40))]
    return [share for share in found if 0 <= share < 1]


@pytest.mark.parametrize("most", [1, 2, 5, 13, 24])
def test_no_two_counts_tell_it_from_the_share(most: int) -> None:
    for share in shares():
        found = among_counts(share, most)
        assert found.denominator <= 2 * most
        for b in range(most + 1):
            for a in range(most + 1):
                assert (a > share * b, a >= share * b) == (a > found * b, a >= found * b), (share, found, a, b)


def test_a_share_of_small_numbers_is_itself() -> None:
    assert among_counts(Fraction(7, 20), 10) == Fraction(7, 20)


def asked(texts: list[str], weights: list[int], **settings: object) -> RobustAnswer:
    named = {f"s{i}.example": votes for i, votes in enumerate(weights)}
    model = CallableModel(lambda prompt: prompt.split("|")[0])
    passages = [Passage(text, source=f"s{i}.example") for i, text in enumerate(texts)]
    made = KeywordAggregation(model, extractor=split, prompts=BARE, weights=named, quorum=0, **settings)
    return made.answer("Who", passages)


@pytest.mark.parametrize("share", FINE[:5])
def test_what_is_within_the_radius_changes_nothing(share: float | Fraction) -> None:
    rng, tried = random.Random(1), 0
    for _ in range(20):
        texts = [rng.choice(["a", "a b", "b", "a c"]) for _ in range(4)]
        weights = [rng.choice([1, 50, 100]) for _ in texts]
        answer = asked(texts, weights, alpha=share)
        for hit in range(4):
            if weights[hit] > answer.radius:
                continue
            for new in ("a", "b", "x", "a b", "b x", "a b x", "none"):
                tried += 1
                other = [new if i == hit else text for i, text in enumerate(texts)]
                assert asked(other, weights, alpha=share).text == answer.text, (texts, weights, hit, new)
    assert tried >= 50
