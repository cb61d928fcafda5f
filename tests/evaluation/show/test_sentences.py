"""The first lines of a run say what came out, to people who know none of its words."""

from __future__ import annotations

from typing import Any

import pytest

from robustrag_integrations.evaluation.score.summary import summarise
from robustrag_integrations.evaluation.show.tables import outcome_in_words
from tests.evaluation.rows import PIA, failed, row

LIE = {"correct": 0.0, "hijacked": True}
JAMMING = {**PIA, "name": "jamming"}


def answers(setup: str, *lies: int | str, count: int = 10, attack: Any = PIA, **change: Any) -> list[dict[str, Any]]:
    """So many answers of a setup under an attack; each lie has this radius, or rests on this sole source."""
    made = []
    for number in range(count):
        about = {"setup": setup, "method": setup.split(" ")[0], "attack": attack, **change}
        if number >= len(lies):
            made.append(row(number, **about))
            continue
        lie = lies[number]
        answer = {"radius": lie} if isinstance(lie, int) else {"radius": 0, "sole_source": lie}
        made.append(row(number, answer=answer, scores=LIE, **about))
    return made


def said(*rows: list[dict[str, Any]]) -> list[str]:
    return outcome_in_words(summarise([each for part in rows for each in part]))


ORDERS = "One planted passage that gives orders (prompt injection): plain RAG said the attacker's answer in "


@pytest.mark.parametrize(
    ("lies", "then"),
    [
        ((), "consensus in 0"),
        ((0, 1, 2), "consensus in 3 (2 with a radius of at least 1, 0 on one source alone)"),
        (("a.md", 0), "consensus in 2 (0 with a radius of at least 1, 1 on one source alone)"),
    ],
)
def test_plain_rag_and_each_defence_stand_side_by_side(lies: tuple[int | str, ...], then: str) -> None:
    plain = answers("vanilla", *[0] * 9)
    assert said(answers("consensus", *lies), plain) == [f"{ORDERS}9 of 10 questions, {then}."]


def test_an_attack_that_wants_no_answer_or_a_link_is_told_as_such() -> None:
    assert "gave no answer in 1 of 10" in said(answers("vanilla", 0, attack=JAMMING))[0]
    link = {**PIA, "name": "link-exfiltration", "corruption_size": 3}
    [told] = said(answers("vanilla", 0, attack=link))
    assert told.startswith("3 planted passages")
    assert "the attacker's link in 1 of 10" in told


def test_of_many_attacks_the_worst_three_are_told_in_the_order_of_the_run() -> None:
    worst = {"pia": 1, "poison": 5, "jamming": 2, "hierarchy": 9, "bidi": 0}
    rows = [answers("vanilla", *[0] * n, attack={**PIA, "name": name, "rank": "last"}) for name, n in worst.items()]
    told = said(*rows)
    assert [sentence.rpartition("answer in ")[2] for sentence in told] == [
        "5 of 10 questions.",
        "2 of 10 questions.",
        "9 of 10 questions.",
        "2 more attacks, which did no more, are in the table.",
    ]
    ranks = said(answers("vanilla", 0), answers("vanilla", 0, attack={**PIA, "rank": "last"}))
    assert ["(at rank: first)" in ranks[0], "(at rank: last)" in ranks[1]] == [True, True]


def test_a_run_without_an_attack_tells_who_was_right_and_one_without_answers_says_so() -> None:
    clean = {"name": "none"}
    [told] = said(answers("vanilla", 0, attack=clean), answers("consensus", 0, 0, attack=clean))
    assert "plain RAG was right in 9 of 10" in told
    assert "consensus was right in 8 of 10 questions, 8 of them" in told
    graded = [row(1, task="long_form", scores={"correct": 0.8, "judge": 80.0})]
    assert "keyword 80" in said(graded)[0]
    unscored = [row(1, task="long_form", scores={"correct": None, "judge": None, "hijacked": None})]
    assert "judge=MODEL" in said(unscored)[0]
    assert "2 rows failed" in said([failed(1), failed(2)])[0]
    assert len(said([])) == 1


def test_several_data_sets_are_told_apart_and_hostile_names_do_nothing() -> None:
    evil = "\x1b[31mred\u202e\nnew"
    told = said(answers("vanilla", 0), answers("vanilla", 0, dataset=evil, attack={**PIA, "name": f"mine:{evil}"}))
    assert told[0].startswith("demo (short answers), bundled: One planted passage")
    assert "comes from mine:" in told[1]
    assert not any(character in "".join(told) for character in "\x1b\u202e\n")
