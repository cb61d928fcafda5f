"""The split: stable, without a question in both halves, and refused for a handful of questions."""

from __future__ import annotations

import pytest

from robustrag_integrations.evaluation.tune.tuning import halves_of, text_key

QUESTIONS = [f"What is the capital of land {n}?" for n in range(21)]


def test_halves_are_halves_and_have_no_question_in_common() -> None:
    halves = halves_of(QUESTIONS, seed=0)
    assert (len(halves.choosing), len(halves.held_out)) == (11, 10)
    assert not halves.choosing & halves.held_out
    assert halves.choosing | halves.held_out == set(map(text_key, QUESTIONS))


def test_order_case_spaces_and_copies_change_nothing_and_the_seed_does() -> None:
    halves = halves_of(QUESTIONS, seed=0)
    assert halves_of([q.upper() + "  " for q in reversed(QUESTIONS)] + QUESTIONS[:5], seed=0) == halves
    assert halves_of(QUESTIONS, seed=1) != halves


@pytest.mark.parametrize("few", [[], ["a"], ["a", "b", "c"], ["a", "A", " a ", "b", "c"]])
def test_a_handful_of_questions_is_refused(few: list[str]) -> None:
    with pytest.raises(ValueError, match=r"questions are too few .* give at least 4"):
        halves_of(few, seed=0)
    halves_of([*few, "w", "x", "y", "z"], seed=0)
