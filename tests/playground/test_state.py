"""States come back as they went, and those of strangers are refused with a reason."""

from __future__ import annotations

import json
import zlib
from base64 import urlsafe_b64encode
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from robustrag_integrations import CallableModel, KeywordAggregation
from robustrag_integrations.answers.ask_report import ask_report
from robustrag_integrations.defenses.registry import BASELINES, METHODS
from robustrag_integrations.playground.links import LONGEST_LINK, link_of, state_of_link
from robustrag_integrations.playground.state import (
    LONGEST_PASSAGE,
    MOST_PASSAGES,
    Row,
    State,
    StateError,
    settable,
    state_of,
    state_of_report,
)


def packed(data: bytes) -> str:
    return urlsafe_b64encode(zlib.compress(data)).decode().rstrip("=")


@pytest.mark.parametrize("method", [*METHODS, *BASELINES])
def test_a_state_of_every_method_comes_back_from_json_and_from_a_link(state: State, method: str) -> None:
    settings = {s.name: s.values[0] if s.is_choice else 1 for s in settable({**METHODS, **BASELINES}[method])}
    rows = (Row("<script>alert(1)</script>\n‮שלום \U0001f600", "evil.example", planted=True), Row(""), *state.rows)
    full = replace(
        state, rows=rows, method=method, settings=settings, choices=("a", "b"), group_by="passage", task="long_form"
    )
    assert state_of(json.loads(json.dumps(full.as_dict()))) == full
    link = link_of(full)
    assert link is not None
    assert state_of_link(link) == full


def test_what_is_too_long_for_a_link_gets_none() -> None:
    random = Random(0)
    noise = "".join(chr(random.randrange(0x4E00, 0x9000)) for _ in range(LONGEST_PASSAGE))
    full = State("?", (Row(noise),))
    assert link_of(full) is None
    assert state_of(full.as_dict()) == full
    assert len(link_of(State("?", (Row("a" * LONGEST_PASSAGE),) * MOST_PASSAGES)) or "") <= LONGEST_LINK


HOSTILE: dict[str, dict[str, Any]] = {
    "another schema": {"schema": "robustrag/answer/1"},
    "unknown entry": {"onload": "alert(1)"},
    "question of another type": {"question": ["x"]},
    "a long question": {"question": "x" * 4001},
    "passages of another type": {"passages": "x"},
    "a passage of another type": {"passages": ["x"]},
    "a passage's unknown entry": {"passages": [{"text": "x", "weight": 9}]},
    "a long passage": {"passages": [{"text": "x" * (LONGEST_PASSAGE + 1)}]},
    "many passages": {"passages": [{"text": "x"}] * (MOST_PASSAGES + 1)},
    "a long source": {"passages": [{"text": "x", "source": "y" * 501}]},
    "planted of another type": {"passages": [{"text": "x", "planted": 1}]},
    "many choices": {"choices": ["x"] * 21},
    "top_k of another type": {"top_k": True},
    "top_k out of range": {"top_k": 0},
    "a huge top_k": {"top_k": 10**30},
    "unknown method": {"method": "toString"},
    "method of another type": {"method": {}},
    "task of another type": {"task": []},
    "unknown grouping": {"group_by": "author"},
    "grouping of another type": {"group_by": {}},
    "settings of another type": {"settings": []},
    "a setting of another method": {"settings": {"gamma": 0.5}},
    "a function as a setting": {"settings": {"extractor": "os:system"}},
    "a setting of another type": {"settings": {"alpha": "0.3"}},
    "a true number": {"settings": {"alpha": True}},
    "a huge setting": {"settings": {"beta": 10**9}},
    "half a whole number": {"settings": {"beta": 2.5}},
    "an unknown word": {"settings": {"threshold": "none"}},
    "a model of another type": {"model": 7},
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_state_is_refused_in_words(name: str) -> None:
    with pytest.raises(StateError) as refused:
        state_of(HOSTILE[name])
    assert 10 < len(str(refused.value)) < 400


@pytest.mark.parametrize(
    "link",
    [
        "",
        "x",
        "<script>",
        "A" * (LONGEST_LINK + 1),
        "=" * 50,
        7,
        None,
        packed(b"[]"),
        packed(b"{"),
        packed(b"[" * 100_000),
        packed(b'{"question": NaN}'),
        packed(b'{"question": "a", "question": "b"}'),
        packed(b'{"top_k": ' + b"9" * 5000 + b"}"),
        packed(b"\xff\xfe"),
        packed(b"{}")[:-3],
        packed(b" " * 20_000_000),  # unfolds to twenty megabytes
    ],
    ids=range(16),
)
def test_a_damaged_link_is_refused_in_words(link: object) -> None:
    with pytest.raises(StateError, match="link"):
        state_of_link(link)


def test_lone_surrogates_become_characters() -> None:
    found = state_of(json.loads('{"question": "a\\ud800b", "passages": [{"text": "\\udfff"}]}'))
    assert found.question == "a�b"
    assert link_of(found)


def test_a_report_of_ask_opens_as_the_state_that_it_was_made_from(state: State) -> None:
    defense = KeywordAggregation(CallableModel(lambda p: "Kilon Pemel"), alpha=0.4)
    passages = state.passages
    report = ask_report("a model", defense.answer(state.question, passages), passages)
    found = state_of_report(json.loads(json.dumps(report)))
    assert found.question == state.question
    assert [(r.text, r.source) for r in found.rows] == [(r.text, r.source) for r in state.rows]
    assert (found.method, found.settings["alpha"]) == ("keyword", 0.4)
    assert len(found.passages[: found.top_k]) == len(passages)


@pytest.mark.parametrize(
    "report", [{}, {"answer": []}, {"answer": {}, "passages": {}}, {"answer": {"defense": "x"}, "passages": []}]
)
def test_another_report_is_refused(report: dict[str, Any]) -> None:
    with pytest.raises(StateError):
        state_of_report(report)
