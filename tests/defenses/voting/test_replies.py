"""Which option a reply votes for, in the forms and languages in which models answer."""

from __future__ import annotations

import time

import pytest

from robustrag_integrations.defenses.voting.options import parse_option

CHOICES = ["Paris", "Lyon", "Nice", "No toll"]
FOR_LYON = [
    "B",
    "(B)",
    "B)",
    "B.",
    "b",
    "**B**",
    "B. Lyon",
    "B) Lyon",
    "(B) Lyon",
    "B: Lyon",
    "Option B",
    "The answer is B",
    "The answer is (B) Lyon.",
    "Answer: B",
    "**Answer:** B",
    "**Answer: B**",
    "**Answer:** **B. Lyon**",
    "Final answer: B",
    "The correct answer is B. Lyon",
    "The correct option is **(B)**.",
    "\\boxed{B}",
    "$\\boxed{\\text{B}}$",
    "\\boxed{\\text{(B) Lyon}}",
    '{"answer": "B"}',
    '{"answer": "Lyon"}',
    '```json\n{"answer": "B"}\n```',
    "B [1]",
    "Lyon [1][2]",
    "Lyon",
    "**Lyon**",
    "It is Lyon.",
    "Based on the passage, the answer is B.",
    "Based on the passage, the correct choice is B) Lyon.",
    "Lyon (not Paris)",
    "Lyon, not Paris.",
    "I would choose B.",
    "My answer is B.",
    "I choose option B",
    "Choice: B",
    "Select B",
    "B is the correct answer.",
    "B is correct.",
    "Option B is correct.",
    "The best answer is B, Lyon.",
    "So the answer is B.\n\nExplanation: A is wrong because ...",
    "B\n\nExplanation: The passage says Lyon.",
    "B. Lyon\n\nThe passage states that Lyon is right, and Paris is wrong.",
    "Ｂ",
    "Ｂ．Ｌｙｏｎ",
    "“B”",
    "'B'",
    "B\u200b",
    "\xa0B",
    "Answer：B",
    "答案：B",
    "La respuesta es B.",
    "La respuesta correcta es B) Lyon",
    "La bonne réponse est B.",
    "Die richtige Antwort ist B.",
    "Die Antwort lautet B.",
    "La risposta corretta è B.",
    "Prawidłowa odpowiedź to B.",
    "Правильный ответ: B",
    "Правильный ответ — B.",
    "Doğru cevap B.",
    "Cevap: B",
    "Het juiste antwoord is B.",
    "Rätt svar är B.",
    "Jawaban: B",
    "Jawabannya adalah B.",
    "Đáp án là B.",
    "Đáp án: B",
    "उत्तर: B",
    "الإجابة الصحيحة هي B",
    "התשובה הנכונה היא B",
    "คำตอบคือ B",
    "The answer is: B",
    "The answer is: **B**",
    "Answer - B",
    "### Answer: B",
    "> B",
    "- B",
    "1. B",
    "<answer>B</answer>",
    "<think>A?</think>B",
    "✅ B",
    "B ✅",
    "Answer:\nB",
    "**Answer:**\n\nB. Lyon",
    "The answer is\n\n**B**",
    "B, because the passage says so.",
    "B - Lyon",
    "B – Lyon",
    "B — Lyon",
    "Lyon.",
    "LYON",
    "lyon",
    "The capital mentioned is Lyon.",
    '"B"',
    "B;",
    "[B]",
    "{B}",
    "Answer is B",
    "answer b",
    "The answer would be B",
    "It's B.",
    "It is B",
    "That would be B.",
    "Correct: B",
    "Final Answer:\n\n\\boxed{B}",
    "Therefore, the correct answer is option B: Lyon.",
    "Vastaus on B.",
    "Odpověď: B",
    "Răspunsul este B.",
    "Svaret er B.",
    "Η απάντηση είναι B.",
    "Отговорът е B.",
    "Odgovor je B.",
    "La resposta és B.",
    "উত্তর: B",
    "பதில்: B",
    "پاسخ: B",
    "Jibu ni B.",
    "Ang sagot ay B.",
]
FOR_NOTHING = [
    "I don't know",
    "E",
    "None of the above",
    "The passage does not say.",
    "No information found",
    "I cannot determine the answer.",
    "A or B",
    "Both A and B",
    "A, B",
    "Paris and Lyon",
    "Not B",
    "The answer is not B.",
    "",
    "Either Paris or Lyon.",
    "The answer is A or B.",
    "I'm unable to answer.",
    "Berlin",
    "No information is given.",
    "B is wrong.",
    "It is not Lyon.",
    "Is it B?",
    "B?",
    "A+",
    "B-",
    "The answer is not A, it is B.",
    "A is wrong; the answer is B.",
    "答案不是B",
    "C++",
    "Not Paris but Lyon.",
    "Lyon rather than Paris",
    "Anything but Lyon.",
    "There is no doubt that it is Lyon.",
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


@pytest.mark.parametrize("reply", ["No", "No, it is not open.", "**No**", "The answer is No.", "No, it is closed."])
def test_a_no_is_no_denial_of_itself(reply: str) -> None:
    assert parse_option(reply, ["Yes", "No"]) == 1


def test_a_decimal_comma_makes_no_vote_for_the_digits_before_it() -> None:
    assert parse_option("5,5", ["5", "5.5"]) == 1
    assert parse_option("Es sind 12,50 Meter.", ["12", "50", "12.50"]) == 2


def test_what_stands_behind_a_dash_does_not_deny() -> None:
    assert parse_option("Yes - not closed", ["Yes", "Perhaps"]) == 0


@pytest.mark.parametrize(
    "text", ["answer is not A, " * 900, "[1]" * 5_000, "$" * 9_000, "\\frac{" * 3_000, "B" * 9_000]
)
def test_hostile_replies_are_read_in_little_time(text: str) -> None:
    start = time.perf_counter()
    parse_option(text, CHOICES)
    assert time.perf_counter() - start < 1.0
