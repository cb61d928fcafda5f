"""States come back as they went, and those of strangers are refused with a reason."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from robustrag_integrations.defenses.registry import BASELINES, METHODS
from robustrag_integrations.playground.state import (
    LONGEST_PASSAGE,
    MOST_PASSAGES,
    Row,
    State,
    StateError,
    settable,
    state_of,
)


@pytest.mark.parametrize("method", [*METHODS, *BASELINES])
def test_a_state_of_every_method_comes_back_from_json(state: State, method: str) -> None:
    offered = settable({**METHODS, **BASELINES}[method])
    settings = {s.name: s.values[0] if s.values else s.default or 1 for s in offered}
    rows = (Row("<script>alert(1)</script>\n‮שלום \U0001f600", "evil.example", planted=True), Row(""), *state.rows)
    full = replace(
        state, rows=rows, method=method, settings=settings, choices=("a", "b"), group_by="passage", task="long_form"
    )
    assert state_of(json.loads(json.dumps(full.as_dict()))) == full


HOSTILE: dict[str, dict[str, Any]] = {
    "unknown entry": {"onload": "alert(1)"},
    "question of another type": {"question": ["x"]},
    "a long question": {"question": "x" * 4001},
    "a passage's unknown entry": {"rows": [{"text": "x", "weight": 9}]},
    "a long passage": {"rows": [{"text": "x" * (LONGEST_PASSAGE + 1)}]},
    "many passages": {"rows": [{"text": "x"}] * (MOST_PASSAGES + 1)},
    "many choices": {"choices": ["x"] * 21},
    "top_k of another type": {"top_k": True},
    "top_k out of range": {"top_k": 0},
    "a huge top_k": {"top_k": 10**30},
    "unknown method": {"method": "toString"},
    "unknown grouping": {"group_by": "author"},
    "a setting of another method": {"settings": {"gamma": 0.5}},
    "a function as a setting": {"settings": {"extractor": "os:system"}},
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_state_is_refused_in_words(name: str) -> None:
    with pytest.raises(StateError) as refused:
        state_of(HOSTILE[name])
    assert 10 < len(str(refused.value)) < 400
