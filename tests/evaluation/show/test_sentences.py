"""The first lines of a run say what came out, to people who know none of its words."""

from __future__ import annotations

from typing import Any

import pytest

from robustrag_integrations.evaluation.score.summary import summarise
from robustrag_integrations.evaluation.show.tables import outcome_in_words
from tests.evaluation.rows import PIA, row

LIE = {"correct": 0.0, "hijacked": True}


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


def test_several_data_sets_are_told_apart_and_hostile_names_do_nothing() -> None:
    evil = "\x1b[31mred\u202e\nnew"
    told = said(answers("vanilla", 0), answers("vanilla", 0, dataset=evil, attack={**PIA, "name": f"mine:{evil}"}))
    assert told[0].startswith("demo (short answers), bundled: One planted passage")
    assert "comes from mine:" in told[1]
    assert not any(character in "".join(told) for character in "\x1b\u202e\n")
