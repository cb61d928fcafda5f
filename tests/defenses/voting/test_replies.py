"""Which option a reply votes for, in the forms and languages in which models answer."""

from __future__ import annotations

import pytest

from robustrag_integrations.defenses.voting.options import parse_option

CHOICES = ["Paris", "Lyon", "Nice", "No toll"]
FOR_LYON = [
    "B",
    "B.",
    "(b)",
    "B. Lyon",
    "B: Lyon",
    "B — Lyon",
    "(B) Lyon",
    "The answer is (B) Lyon.",
    "**Answer: B**",
    "**Answer:** Lyon",
    "The correct answer is B. Lyon",
    "$\\boxed{\\text{B}}$",
    '{"answer": "Lyon"}',
    "Lyon [1][2]",
    '"Lyon."',
    "- Lyon",
    "Ｂ．Ｌｙｏｎ",
    "B\u200b",
    "<think>A?</think>B",
    "Answer:\nB",
    "lyon",
    "B;",
]
FOR_NOTHING = [
    "I don't know",
    "None of the above",
    "No information found",
    "A or B",
    "A, B",
    "Not B",
    "",
    "Berlin",
    "B is wrong.",
    "Is it B?",
    "A+",
    "Anything but Lyon.",
    "Lyon (wrong)",
    "Lyon (not Paris)",
    "ikke Lyon",
    "Lyon, not Paris",
    "Lyon\n\nThat is false.",
    "It was said to be Lyon.",
]
FOR_NO_TOLL = ["No toll", "D", "The answer is D. No toll", "no toll [1]"]


@pytest.mark.parametrize("reply", FOR_LYON)
def test_a_reply_that_states_a_letter_or_a_text_votes_for_it(reply: str) -> None:
    assert parse_option(reply, CHOICES) == 1


@pytest.mark.parametrize("reply", FOR_NOTHING)
def test_a_reply_that_states_no_option_or_several_does_not_vote(reply: str) -> None:
    assert parse_option(reply, CHOICES) is None


@pytest.mark.parametrize("reply", FOR_NO_TOLL)
def test_an_option_with_a_negation_is_voted_for_by_its_words(reply: str) -> None:
    assert parse_option(reply, CHOICES) == 3


@pytest.mark.parametrize("reply", ["- 5", ".5", "minus 5", "5 million", "-5", "5%", "1.5", "about 5", "5 or 6", "$5"])
def test_a_number_is_voted_for_by_itself_alone(reply: str) -> None:
    assert parse_option(reply, ["5", "50"]) is None
    assert parse_option("5.", ["5", "50"]) == 0
    assert parse_option("-5", ["5", "-5"]) == 1
