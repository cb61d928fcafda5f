"""Questions with several right answers, asked of a reader that makes no mistake, beside a plain union."""

from __future__ import annotations

import pytest

from robustrag_integrations import CallableModel, ConsensusAggregation
from robustrag_integrations.evaluation.data.datasets import load_dataset
from tests.evaluation.lists import perfect_reader, score_list

QUESTIONS = load_dataset("demo-lists").questions
READ = perfect_reader(QUESTIONS)
READER = CallableModel(READ, samples=False)


def figures(min_support: int) -> tuple[int, int, int, int]:
    """Questions with all right answers and no wrong one, right answers, wrong ones, and answers of radius 1 or more."""
    defense = ConsensusAggregation(READER, task="list", min_support=min_support)
    answers = [defense.answer(question.question, question.passages) for question in QUESTIONS]
    scores = [score_list(q, (c.text for c in a.claims)) for q, a in zip(QUESTIONS, answers, strict=True)]
    return (
        sum(score.is_exact for score in scores),
        sum(score.right for score in scores),
        sum(score.wrong for score in scores),
        sum(answer.radius > 0 for answer in answers),
    )


@pytest.mark.parametrize(
    ("min_support", "expected"), [(1, (22, 243, 111, 0)), (2, (12, 109, 55, 4)), (3, (7, 63, 16, 13))]
)
def test_every_item_with_enough_support_is_found_and_no_other(min_support: int, expected: tuple[int, ...]) -> None:
    assert figures(min_support) == expected


def test_min_support_of_one_is_the_plain_union() -> None:
    defense = ConsensusAggregation(READER, task="list", min_support=1)
    for question in QUESTIONS[:20]:
        said = {line for p in question.passages for line in READ(f"{question.question} {p.text}").split("\n")}
        answer = defense.answer(question.question, question.passages)
        assert {claim.text for claim in answer.claims} == said - {"I don't know"}
        assert all(claim.origins for claim in answer.claims)
