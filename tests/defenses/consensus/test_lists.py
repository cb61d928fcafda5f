"""Lists: which lines are items, which items are shown, and how long they stay."""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence
from typing import Any

import pytest

from robustrag_integrations import CallableModel, ConsensusAggregation, Passage
from robustrag_integrations.answers.answer import RobustAnswer
from robustrag_integrations.defenses.consensus.lists import CountedList
from robustrag_integrations.replies.keys import Items, items_of


def ask(replies: Sequence[str], **settings: Any) -> RobustAnswer:
    def model(prompt: str) -> str:
        return next(reply for i, reply in enumerate(replies) if f"passage {i}." in prompt)

    passages = [Passage(f"passage {i}.", origin=f"{i}.example") for i in range(len(replies))]
    defense = ConsensusAggregation(CallableModel(model, samples=False, max_concurrency=1), task="list", **settings)
    return defense.answer("Which towns lie on the Lenn?", passages)


@pytest.mark.parametrize(
    ("reply", "items"),
    [
        ("- Kelford\n* Ashby\n1. Marrow\n(2) Dunholt", ["Kelford", "Ashby", "Marrow", "Dunholt"]),
        ("2. Bundesliga\n3. Liga", ["2. Bundesliga", "3. Liga"]),
        ("1. Kelford\n2. 2. Liga\n\n1. Ashby", ["Kelford", "2. Liga", "Ashby"]),
        ("These are the towns:\n\nKelford\nkelford.", ["Kelford"]),
        ("<think>Ashby?</think>\nKelford", ["Kelford"]),
        ("3.5 mg\n5 mg\n5 g", ["3.5 mg", "5 mg", "5 g"]),
        ("-\n***\n", []),
        ("x" * 501, []),
    ],
)
def test_each_line_is_an_item_once(reply: str, items: list[str]) -> None:
    assert [form for _, form in items_of(reply)] == items


@pytest.mark.parametrize(
    ("reply", "items"),
    [
        ("1. tea 2. milk 3. sugar", ["tea", "milk", "sugar"]),
        ("They are: 1) tea 2) milk", ["tea", "milk"]),
        ("salt, pepper and oil", ["salt, pepper and oil"]),
        ("Version 2. is the last", ["Version 2. is the last"]),
        ("1. FC Union", ["FC Union"]),
        ("12. May 2020 3. June 2021", ["12. May 2020 3. June 2021"]),
    ],
)
def test_a_line_is_split_where_it_is_numbered_and_at_no_comma(reply: str, items: list[str]) -> None:
    assert [form for _, form in items_of(reply)] == items


def test_an_item_is_shown_where_more_than_half_of_those_that_list_anything_give_it() -> None:
    replies = ["Kelford\nAshby", "Kelford\nAshby", "kelford\nMarrow", "Kelford", "I don't know", "Dunholt"]
    answer = ask(replies)
    assert (answer.text, answer.radius) == ("Kelford", 0)  # one source more brings Ashby in
    [claim] = answer.claims
    assert (claim.support, claim.radius, claim.sources) == (4, 1, (0, 1, 2, 3))
    assert claim.origins == ("0.example", "1.example", "2.example", "3.example")
    assert [(c["text"], c["support"], c["radius"]) for c in answer.evidence["left_out"]] == [
        ("Ashby", 2, None),
        ("Dunholt", 1, None),
        ("Marrow", 1, None),
    ]
    [warning] = [each for each in answer.warnings if "left out" in each]
    assert all(item in warning for item in ("Ashby", "Dunholt", "Marrow"))
    assert [g.status for g in answer.sources] == ["supports"] * 4 + ["abstained", "differs"]
    assert RobustAnswer.from_dict(answer.to_dict()) == answer


def test_what_no_two_give_is_no_answer_and_people_are_told() -> None:
    answer = ask(["Kelford", "Ashby"])
    assert (answer.abstained, answer.radius) == (True, 0)
    assert answer.text.splitlines()[1:] == ["- 0.example: Kelford", "- 1.example: Ashby"]
    assert answer.for_prompt().text == "I don't know"
    assert ask(["Kelford", "Ashby"], disagreement="abstain").text == "I don't know"
    assert ask(["Kelford", "I don't know"]).abstained
    assert ask(["Kelford", "I don't know"], min_support=1).text == "Kelford"


def test_early_decisions_count_items_too() -> None:
    early = ask(["Kelford"] * 6, stop_when_decided=True)
    assert (early.text, early.evidence["decided_after"]) == ("Kelford", 4)


MOVES: list[Items | None] = [None, *(tuple((key, key) for key in keys) for keys in ("a", "b", "z", "ab", "az", "abz"))]


def test_the_radius_is_exact_against_every_attack() -> None:
    rng, attacks, promised = random.Random(7), 0, 0
    for _ in range(80):
        said = [rng.choice([*MOVES[:5], MOVES[1], MOVES[1], MOVES[4]]) for _ in range(rng.randint(1, 5))]
        made = CountedList(tuple(said), rng.choice([1, 2, 2, 3]))
        broken = len(said) + 1
        for size in range(1, min(len(said), 3) + 1):
            for chosen in itertools.combinations(range(len(said)), size):
                for moves in itertools.product(MOVES, repeat=size):
                    attacks += 1
                    new = dict(zip(chosen, moves, strict=True))
                    other = CountedList(tuple(new.get(i, own) for i, own in enumerate(said)), made.min_support)
                    if [*other.shown] != [*made.shown]:
                        broken = min(broken, size)
        radius = made.radius()
        assert radius < broken, (said, made.min_support)
        if broken <= 3:
            assert radius == broken - 1, (said, made.min_support)
        promised += radius > 0
    assert attacks > 10_000
    assert promised > 5


def test_items_come_in_the_order_of_the_source_that_lists_most_of_them() -> None:
    steps = "1. Unplug it\n2. Open the lid\n3. Clean the filter\n4. Close it"
    answer = ask([steps, "Clean the filter\nUnplug it", *[steps] * 4])
    assert answer.text == "- Unplug it\n- Open the lid\n- Clean the filter\n- Close it"
    assert (answer.radius, answer.radius_verbatim) == (1, 0)
