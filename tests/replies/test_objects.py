"""The check of an object that an agreed answer was put into."""

from __future__ import annotations

import json
from typing import Any

import pytest

from robustrag_integrations.replies.keys import object_holds

HOW_LONG = "How many days does the warranty last?"


@pytest.mark.parametrize(
    ("found", "agreed", "question"),
    [
        ({"name": "Anna Lind"}, "Anna Lind", "Who leads it?"),
        ({"text": "The lead is Anna Lind."}, "Anna Lind", "Who is the lead?"),
        ({"days": 30}, "30 days", HOW_LONG),
        ({"people": 10000}, "10,000", "How many people?"),
        ({"items": ["salt", "pepper"]}, "salt, pepper", "What is in it?"),
        ({"covered": False}, "No", "Is water covered?"),
        ([{"name": "x"}, {"name": "Oslo"}], "Oslo", "Where?"),
    ],
)
def test_an_object_that_says_it_holds_it(found: Any, agreed: str, question: str) -> None:
    assert object_holds(json.dumps(found), agreed, question)
    assert object_holds(f"```json\n{json.dumps(found)}\n```", agreed, question)


@pytest.mark.parametrize(
    ("found", "agreed", "question"),
    [
        ({"name": "Otto"}, "Anna Lind", "Who leads it?"),
        ({"name": "not Anna Lind"}, "Anna Lind", "Who leads it?"),
        ({"Anna Lind": "Otto"}, "Anna Lind", "Who leads it?"),
        ({"days": -30}, "30 days", HOW_LONG),
        ({"dose_mg": 5}, "5 g", "What is the dose?"),
        ({"days": 30}, "30 or 60 days", HOW_LONG),
        ({"days": 30}, "not 30 days", HOW_LONG),
        ({"covered": True}, "No", "Is water covered?"),
        ({"a": None, "b": [], "c": {}}, "None", "What?"),
    ],
)
def test_an_object_that_says_something_else_does_not(found: Any, agreed: str, question: str) -> None:
    assert not object_holds(json.dumps(found), agreed, question)


def test_a_text_that_is_no_object_is_one_value_and_a_deep_one_is_read_to_a_depth() -> None:
    assert object_holds("Oslo", "Oslo", "Where?")
    assert not object_holds("Bergen, not Oslo", "Oslo", "Where?")
    assert not object_holds('{"a": ' * 5000 + '"Oslo"' + "}" * 5000, "Oslo", "Where?")
    assert not object_holds('{"a": ' * 50 + '"Oslo"' + "}" * 50, "Oslo", "Where?")
