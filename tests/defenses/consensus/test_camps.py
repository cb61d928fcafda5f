"""Two camps that share a part: the answer is that part, and a warning says how they differ."""

from __future__ import annotations

import pytest

from robustrag_integrations import CallableModel, ConsensusAggregation, Passage
from robustrag_integrations.answer import RobustAnswer

DIFFER = "the answer is what the groups share, beyond which they differ"


def answer_of(replies: list[str], **settings: object) -> RobustAnswer:
    defense = ConsensusAggregation(
        CallableModel(lambda prompt: replies[int(prompt.split("passage ")[1][0])]), **settings
    )
    return defense.answer("What is it?", [Passage(f"passage {i}.", source=f"s{i}") for i in range(len(replies))])


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("before 1990", "after 1990"),
        ("vor 1990", "nach 1990"),
        ("more than 100", "less than 100"),
        ("10 March 2020", "10 March 2021"),
        ("$5", "€5"),
        ("100 mg", "100 g"),
        ("Windows 10", "Windows 11"),
        ("United won 2-1", "United won 1-2"),
        ("Paris, Texas", "Paris, France"),
        ("John Smith", "Jane Smith"),
        ("Henry VIII", "Henry VII"),
        ("DE89 3704 0044 0532 0130 00", "DE89 3704 0044 0532 0130 01"),
    ],
)
def test_what_camps_do_not_share_is_told(one: str, other: str) -> None:
    answer = answer_of([one, one, other, other])
    [warning] = [w for w in answer.warnings if DIFFER in w]
    assert "2 say" in warning
    assert "2 others" in warning


@pytest.mark.parametrize(
    "replies",
    [
        ["Anna Lind", "Anna Lind", "It is Anna Lind.", "It is Anna Lind."],
        ["Anna Lind, the baker", "Anna Lind, the baker", "Anna Lind runs it", "Anna Lind runs it"],
        ["in 1990", "in 1990", "by 1990 it was", "by 1990 it was"],
        ["Windows 10", "Windows 10", "Windows", "Windows"],
        ["Windows 10", "Windows 10", "Windows 10", "Windows 11"],  # one is not enough
        ["Paris", "Paris", "Lyon", "Lyon"],  # contradicts, and shares nothing
        ["I don't know."] * 4,
    ],
)
def test_other_words_for_the_same_and_single_voices_are_no_camps(replies: list[str]) -> None:
    assert not any(DIFFER in warning for warning in answer_of(replies).warnings)


def test_votes_make_a_camp() -> None:
    answer = answer_of(["Windows 10", "Windows 11"], weights={"s0": 3, "s1": 3})
    assert any("3 say 'window 10', and 3 others 'window 11'" in warning for warning in answer.warnings)


@pytest.mark.parametrize(
    ("answer", "other"),
    [("Windows 10", "Windows 11"), ("100 mg", "100 g"), ("$5", "€5"), ("John Smith", "Jane Smith")],
)
def test_a_smaller_camp_that_shares_a_part_of_the_answer_contradicts_it(answer: str, other: str) -> None:
    found = answer_of([answer] * 3 + [other] * 2)
    assert found.text == answer
    [warning] = [w for w in found.warnings if "contradict" in w]
    assert "said by 2 groups that do not say" in warning


def test_initials_are_no_other_name() -> None:
    assert not answer_of(["John Smith"] * 3 + ["J. Smith"] * 2).warnings
