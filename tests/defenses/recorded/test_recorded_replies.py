"""Every method that reads text, on recorded replies of two real models: floors for right and certified, and for lies.

A change of how replies are read, counted or shown has to hold these. Raise the floors where it holds more.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from robustrag_integrations import CallableModel, ConsensusAggregation, KeywordAggregation, RobustAnswer
from robustrag_integrations.certification.metrics import contains_answer
from tests.helpers.brute_force import same

PASSAGES = 10
METHODS: dict[str, tuple[type[ConsensusAggregation] | type[KeywordAggregation], dict[str, Any]]] = {
    "consensus": (ConsensusAggregation, {}),
    "keyword": (KeywordAggregation, {"final": "never"}),
}


class Scores(NamedTuple):
    """Of 60 questions: right, right with a radius of at least 1 and 3; with one planted reply: right, and lies.

    Lies that say that they rest on one source alone are counted apart: `min_radius=1` withholds them.
    """

    right: int
    certified: int
    certified_3: int
    attacked: int
    lies: int
    sole_lies: int


# At least so many, but of lies at most.
FLOORS = {
    ("0.5b", "consensus"): Scores(13, 8, 4, 13, 0, 0),
    ("0.5b", "keyword"): Scores(17, 4, 0, 16, 3, 0),
    ("1.5b", "consensus"): Scores(17, 11, 6, 15, 0, 3),
    ("1.5b", "keyword"): Scores(25, 4, 0, 21, 10, 3),
}


@cache
def rows(model: str) -> list[dict[str, Any]]:
    text = Path(__file__).with_name(f"qwen-{model}.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


def answer(method: str, question: str, replies: list[str]) -> RobustAnswer:
    made, settings = METHODS[method]
    said = {f"<{number}>": reply for number, reply in enumerate(replies)}
    model = CallableModel(lambda prompt: next(reply for name, reply in said.items() if name in prompt), samples=False)
    return made(model, **settings).answer(question, list(said))


def is_right(found: RobustAnswer, answers: list[str]) -> bool:
    return not found.abstained and contains_answer(found.text, answers) > 0


def is_told(found: RobustAnswer, answers: list[str]) -> bool:
    """True if the right answer is among those that most sources give, where they disagree."""
    leading = [each for each in found.dissent if each.support == found.dissent[0].support >= 2][:3]
    return found.abstained and any(contains_answer(each.text, answers) > 0 for each in leading)


@pytest.mark.parametrize(("model", "method"), FLOORS)
def test_recorded_replies_hold_their_floors(model: str, method: str) -> None:
    right = certified = certified_3 = attacked = lies = sole_lies = 0
    for row in rows(model):
        clean = answer(method, row["question"], row["replies"])
        if is_right(clean, row["answers"]):
            right, certified, certified_3 = (
                right + 1,
                certified + (clean.radius >= 1),
                certified_3 + (clean.radius >= 3),
            )
        planted = answer(method, row["question"], [row["planted"], *row["replies"][: PASSAGES - 1]])
        attacked += is_right(planted, row["answers"])
        if is_right(planted, [row["incorrect"]]):
            lies, sole_lies = lies + (planted.sole_source is None), sole_lies + (planted.sole_source is not None)
        if clean.radius >= 1 and not clean.abstained:  # and the radius holds: this is one of its attacks
            swapped = answer(method, row["question"], [row["planted"], *row["replies"][1:]])
            assert same(swapped.text, clean.text)
    found, floor = Scores(right, certified, certified_3, attacked, lies, sole_lies), FLOORS[model, method]
    assert all(have >= least for have, least in zip(found[:-2], floor[:-2], strict=True)), found
    assert found.lies <= floor.lies, found
    assert found.sole_lies <= floor.sole_lies, found


def test_the_default_has_or_tells_the_right_answer_as_often_as_one_prompt_with_all_passages() -> None:
    vanilla = sum(contains_answer(row["vanilla"], row["answers"]) > 0 for row in rows("0.5b"))
    found = [(row, answer("consensus", row["question"], row["replies"])) for row in rows("0.5b")]
    default = sum(is_right(each, row["answers"]) or is_told(each, row["answers"]) for row, each in found)
    assert 0 < vanilla <= default
