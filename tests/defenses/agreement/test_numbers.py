"""Shares among counts: the same comparisons with small numbers, and radii that stand by them."""

from __future__ import annotations

import random
from fractions import Fraction

import pytest

from robustrag_integrations import CallableModel, ConsensusAggregation, KeywordAggregation, Passage, RobustAnswer
from robustrag_integrations.defenses.agreement.numbers import among_counts, exact_number
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


def asked(method: type, texts: list[str], weights: list[int], **settings: object) -> RobustAnswer:
    named = {f"s{i}.example": votes for i, votes in enumerate(weights)}
    model = CallableModel(lambda prompt: prompt.split("|")[0])
    passages = [Passage(text, source=f"s{i}.example") for i, text in enumerate(texts)]
    return method(model, extractor=split, prompts=BARE, weights=named, quorum=0, **settings).answer("Who", passages)


@pytest.mark.parametrize(
    ("method", "share", "texts", "weights", "radius"),
    [
        (KeywordAggregation, 1 / 30, "a,c,a", [100, 1, 100], 99),
        (KeywordAggregation, 1 / 81, "a b,a b,a b", [100] * 3, 99),
        (KeywordAggregation, 1 / 3, ",".join(["a b"] * 10), [100] * 10, 299),
        (KeywordAggregation, 1e-20, "a b,a b,a b,a b", [1] * 4, 1),
        (ConsensusAggregation, 2 / 3, "a,a,a", [100] * 3, 199),
        (ConsensusAggregation, Fraction(0.6), "a,a,a", [100, 100, 50], 149),
    ],
)
def test_radii_under_fine_shares(
    method: type, share: float | Fraction, texts: str, weights: list[int], radius: int
) -> None:
    assert asked(method, texts.split(","), weights, share=share).radius == radius


def test_no_replacement_within_the_radius_changes_an_answer_under_a_fine_share() -> None:
    """Products of such a share with thirteen votes are more than a machine word holds."""
    texts, settings = (
        ["c", "a", "a", "a", "a", "a", "b", "a", "a", "a", "a", "a", "a"],
        {"share": 0.07 / 7.3, "min_support": 12},
    )
    answer = asked(KeywordAggregation, texts, [1] * 13, **settings)
    assert answer.radius == 0
    assert asked(KeywordAggregation, ["a b", *texts[1:]], [1] * 13, **settings).text != answer.text


@pytest.mark.parametrize("share", FINE)
def test_what_is_within_the_radius_changes_nothing(share: float | Fraction) -> None:
    rng, tried = random.Random(1), 0
    methods = [KeywordAggregation] + [ConsensusAggregation] * (Fraction(share) >= Fraction(1, 2))
    for _ in range(20):
        texts = [rng.choice(["a", "a b", "b", "a c"]) for _ in range(4)]
        weights = [rng.choice([1, 50, 100]) for _ in texts]
        for method in methods:
            answer = asked(method, texts, weights, share=share)
            for hit in range(4):
                if weights[hit] > answer.radius:
                    continue
                for new in ("a", "b", "x", "a b", "b x", "a b x", "none"):
                    tried += 1
                    other = [new if i == hit else text for i, text in enumerate(texts)]
                    assert asked(method, other, weights, share=share).text == answer.text, (texts, weights, hit, new)
    assert tried >= 50
