"""Which option a reply votes for, in the forms and languages in which models answer."""

from __future__ import annotations

import time

import pytest

from robustrag_integrations.defenses.voting.options import parse_option

CHOICES = ["Paris", "Lyon", "Nice", "No toll"]
FOR_LYON = [
    "B",
    "B.",
    "B. Lyon",
    "B: Lyon",
    "The answer is (B) Lyon.",
    "**Answer: B**",
    "The correct answer is B. Lyon",
    "$\\boxed{\\text{B}}$",
    '{"answer": "Lyon"}',
    "Lyon [1][2]",
    "It is Lyon.",
    "Lyon (not Paris)",
    "My answer is B.",
    "Select B",
    "Option B is correct.",
    "B\n\nExplanation: The passage says Lyon.",
    "Ｂ．Ｌｙｏｎ",
    "B\u200b",
    "答案：B",
    "La bonne réponse est B.",
    "La risposta corretta è B.",
    "Правильный ответ — B.",
    "Het juiste antwoord is B.",
    "Jawabannya adalah B.",
    "उत्तर: B",
    "คำตอบคือ B",
    "Answer - B",
    "- B",
    "<think>A?</think>B",
    "Answer:\nB",
    "B, because the passage says so.",
    "B — Lyon",
    "lyon",
    "B;",
    "Answer is B",
    "It's B.",
    "Correct: B",
    "Vastaus on B.",
    "Svaret er B.",
    "Odgovor je B.",
    "பதில்: B",
    "Ang sagot ay B.",
]
FOR_NOTHING = [
    "I don't know",
    "None of the above",
    "No information found",
    "A or B",
    "A, B",
    "Not B",
    "",
    "The answer is A or B.",
    "Berlin",
    "B is wrong.",
    "Is it B?",
    "A+",
    "The answer is not A, it is B.",
    "答案不是B",
    "Not Paris but Lyon.",
    "Anything but Lyon.",
]
FOR_NO_TOLL = ["No toll", "There is no toll.", "D", "The answer is D. No toll", "No toll is charged.", "no toll [1]"]


@pytest.mark.parametrize("reply", FOR_LYON)
def test_a_reply_that_states_a_letter_or_a_text_votes_for_it(reply: str) -> None:
    assert parse_option(reply, CHOICES) == 1


@pytest.mark.parametrize("reply", FOR_NOTHING)
def test_a_reply_that_states_no_option_or_several_does_not_vote(reply: str) -> None:
    assert parse_option(reply, CHOICES) is None


@pytest.mark.parametrize("reply", FOR_NO_TOLL)
def test_an_option_with_a_negation_is_voted_for_by_its_words(reply: str) -> None:
    assert parse_option(reply, CHOICES) == 3


@pytest.mark.parametrize(
    "text", ["answer is not A, " * 900, "[1]" * 5_000, "$" * 9_000, "\\frac{" * 3_000, "B" * 9_000]
)
def test_hostile_replies_are_read_in_little_time(text: str) -> None:
    start = time.perf_counter()
    parse_option(text, CHOICES)
    assert time.perf_counter() - start < 1.0
