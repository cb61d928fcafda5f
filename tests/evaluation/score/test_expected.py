"""Expected certified accuracy: what counts, its exact interval, and the inequality behind it by enumeration."""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Any

import pytest

from robustrag_integrations.counting import Count, Rule
from robustrag_integrations.evaluation.score.summary import EMPTY, clopper_pearson, expected_accuracy, summarise
from tests.evaluation.rows import PIA, failed, row


def promised(
    number: int, radius: int = 2, correct: float = 1.0, scope: str = "this_run", **change: Any
) -> dict[str, Any]:
    known = {"model": "samples", "why": "temperature 1", "scope": scope, "promise": "..."}
    return row(number, answer={"radius": radius, "determinism": known}, scores={"correct": correct}, **change)


def held(rows: list[dict[str, Any]]) -> dict[int, tuple[int, int]]:
    return {size: (round((share.mean or 0) * share.n), share.n) for size, share in expected_accuracy(rows).items()}


def test_right_answers_count_up_to_their_radius() -> None:
    rows = [promised(1, 2), promised(2, 1), promised(3, 0), promised(4, 3, correct=0.0)]
    assert held(rows) == {1: (2, 4), 2: (1, 4), 3: (0, 4)}


def test_failed_questions_count_as_not_right_and_partly_right_ones_too() -> None:
    assert held([promised(1), failed(2), promised(3, correct=0.9)]) == {1: (1, 3), 2: (1, 3)}


def test_a_radius_of_which_nothing_is_promised_counts_for_nothing() -> None:
    assert held([promised(1), promised(2, 4, scope="nothing")]) == {1: (1, 2), 2: (1, 2)}
    assert held([row(1), row(2)]) == {}, "rows that do not say what their radius promises"


@pytest.mark.parametrize("change", [{"task": "long_form"}, {"method": "vanilla"}, {"method": "no-rag"}])
def test_long_answers_and_baselines_have_none(change: dict[str, str]) -> None:
    assert held([promised(1, **change)]) == {}


def test_under_attack_there_is_none_and_clean_lines_say_it() -> None:
    lines = summarise([promised(1), promised(2, 1), promised(3, attack=PIA)])
    clean, attacked = lines
    assert [*clean.expected] == [1, 2]
    assert attacked.expected == {}


def test_the_interval_is_the_exact_one() -> None:
    """n = 10, k = 9 is in every table."""
    found = clopper_pearson(9, 10)
    assert (round(found.low or 0, 4), round(found.high or 0, 4)) == (0.5550, 0.9975)
    assert clopper_pearson(0, 0) == EMPTY


def test_no_attacker_however_adaptive_gets_below_the_share_by_enumeration() -> None:
    """P[right under attack] >= P[right and radius >= k'], exactly, for voters that draw independently."""
    chances = [(Fraction(7, 10), Fraction(2, 10), Fraction(1, 10)), (Fraction(1, 2), Fraction(1, 2), Fraction(0))]
    for voters, size in [(3, 1), (4, 1), (5, 1), (5, 2)]:
        odds = [chances[i % 2] for i in range(voters)]
        bound, worst = Fraction(0), Fraction(2)
        for votes in itertools.product(range(3), repeat=voters):
            count = Count(tuple(votes), Rule(1))
            if count.winner == 0 and count.radius() >= size:
                bound += chance(odds, dict(enumerate(votes)))
        for places in itertools.combinations(range(voters), size):
            worst = min(worst, right_under_attack(odds, places))
        assert 0 < bound <= worst < 1


def right_under_attack(odds: list[tuple[Fraction, ...]], places: tuple[int, ...]) -> Fraction:
    """The probability that the first option wins although the attacker sees all other votes first."""
    others = [i for i in range(len(odds)) if i not in places]
    total = Fraction(0)
    for votes in itertools.product(range(3), repeat=len(others)):
        said = dict(zip(others, votes, strict=True))
        lies = itertools.product([None, 0, 1, 2], repeat=len(places))
        said_by_all = ((*said.values(), *lie) for lie in lies)
        winners = {Count(votes, Rule(1)).winner for votes in said_by_all}
        total += chance(odds, said) if winners == {0} else 0
    return total


def chance(odds: list[tuple[Fraction, ...]], said: dict[int, int]) -> Fraction:
    found = Fraction(1)
    for place, vote in said.items():
        found *= odds[place][vote]
    return found
