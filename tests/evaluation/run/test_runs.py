"""`runs`: each clean question is asked again, past the cache; a run that fails is one that is not right."""

from __future__ import annotations

from typing import Any

import pytest

from robustrag_integrations.evaluation.run.config import ConfigError, read_config
from robustrag_integrations.evaluation.run.engine import LocalEngine
from robustrag_integrations.evaluation.run.runner import evaluate
from robustrag_integrations.evaluation.score.expected import expected_of_question
from robustrag_integrations.evaluation.score.schema import misfit_in_row
from tests.evaluation import light
from tests.evaluation.worlds import LIGHT, write_questions


@pytest.fixture
def config(tmp_path):
    def made(**change: Any):
        known = {"data": [write_questions(tmp_path, 2)], "models": [LIGHT], "tasks": ["mc"], "top_k": [4]}
        return read_config({**known, "defenses": ["voting"], "attacks": ["pia"], "runs": 3, **change})

    return made


def test_only_clean_questions_are_asked_again_and_the_runs_stand_in_their_row(config) -> None:
    done = evaluate(config())
    clean = [row for row in done.rows if row["attack"]["name"] == "none"]
    assert [len(row["further_runs"]) for row in clean] == [2, 2]
    assert all("further_runs" not in row for row in done.rows if row["attack"]["name"] != "none")
    for row in clean:
        assert misfit_in_row(row) is None
        assert {(r["text"], r["correct"], r["error"]) for r in row["further_runs"]} == {(row["answers"][0], 1.0, None)}
        assert expected_of_question(row)[0].held == 3


def test_the_cache_answers_no_further_run(config, tmp_path, monkeypatch) -> None:
    calls = []
    answer = light.answer
    monkeypatch.setattr(light, "answer", lambda prompt: calls.append(prompt) or answer(prompt))
    for _ in range(2):
        evaluate(config(attacks=[]), engine=LocalEngine(cache=str(tmp_path / "cache")))
    assert len(calls) == 2 * 4 * (1 + 2) + 2 * 4 * 2, "the first runs once, the further ones each time"


def test_a_further_run_that_fails_counts_as_not_right(config, monkeypatch) -> None:
    calls = []

    def breaking(prompt: str) -> str:
        calls.append(prompt)
        if len(calls) > 4:
            raise ValueError("overloaded")
        return light_answer(prompt)

    light_answer = light.answer
    monkeypatch.setattr(light, "answer", breaking)
    [row] = evaluate(config(attacks=[], data=[{"source": config().data[0].source, "limit": 1}])).rows
    assert row["error"] is None
    assert [(r["text"], r["correct"], r["radius"]) for r in row["further_runs"]] == [(None, 0.0, 0)] * 2
    assert "overloaded" in row["further_runs"][0]["error"]
    assert (expected_of_question(row)[0].held, expected_of_question(row)[0].share.n) == (1, 3)


def test_a_key_says_how_often_it_was_asked_and_what_was_probed_only_where_that_was_chosen(config) -> None:
    keys = {runs: [row["key"] for row in evaluate(config(runs=runs)).rows] for runs in (1, 2)}
    assert [a == b for a, b in zip(keys[1], keys[2], strict=True)] == [False, False, True, True]


@pytest.mark.parametrize(
    "wrong", [{"runs": 0}, {"runs": 1.5}, {"runs": 2000}, {"probes": [7]}, {"probes": ["no.json"]}]
)
def test_what_cannot_be_is_named(config, wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=next(iter(wrong))):
        config(**wrong)
