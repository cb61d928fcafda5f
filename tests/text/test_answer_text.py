"""The answer is taken out of what a model sends: reasoning, JSON and LaTeX go."""

from __future__ import annotations

import pytest

from robustrag_integrations.text.answer_text import answer_text, unboxed


@pytest.mark.parametrize(
    ("reply", "answer"),
    [
        ("Paris", "Paris"),
        ("<think>Lyon? I don't know.</think>\nParis", "\nParis"),
        ("So it is Lyon.</think>Paris", "Paris"),
        ("Paris <think>or is it", "Paris "),
        ('{"answer": "Paris", "confidence": 0.9}', "Paris"),
        ('```json\n{"answer": ["Paris", "Lyon"]}\n```', "Paris\nLyon"),
        ('{"city": "Paris", "since": "unknown"}', '{"city": "Paris", "since": "unknown"}'),
        ('{"answer": true}', "yes"),
        ('{"answer": 4608}', "4608"),
        ('{"answer": null}', ""),
        ("{not json}", "{not json}"),
        ('{"answer": 1.50, "sourceId": "a.md", "chain-of-thought": "..."}', "1.50"),
        ('{"Antwort": "Oslo", "Begründung": "Es steht dort."}', "Oslo"),
    ],
)
def test_the_answer_is_taken_out_of_what_a_model_sends(reply: str, answer: str) -> None:
    assert answer_text(reply) == answer


@pytest.mark.parametrize(
    "beside",
    [
        '"unit": "mg"',
        '"currency": "NOK"',
        '"source_currency": "NOK"',
        '"resource": "x"',
        '"quota": 3',
        '"negated": true',
        '"note": "for members"',
        '"value": 6',
        '"answer": 6',
        '"Answer": 6',
        '"question": "How much?"',
        '"if": "asked"',
    ],
)
def test_an_object_with_more_than_asides_beside_its_answer_stays_whole(beside: str) -> None:
    reply = f'{{"answer": 5, "reason": "x", {beside}}}'
    assert answer_text(reply) == reply


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        (r"\boxed{4608}", "4608"),
        (r"\boxed{4608\ \text{pallets}}", "4608 pallets"),
        (r"It is $\boxed{1{,}250\%}$.", "It is 1,250% ."),
        (r"C:\times\frac.txt", r"C:\times\frac.txt"),
        ("$HOME/a_b and ${A_B}$", "$HOME/a_b and ${A_B}$"),
    ],
)
def test_boxed_answers_are_unboxed(text: str, plain: str) -> None:
    assert " ".join(unboxed(text).split()) == plain
