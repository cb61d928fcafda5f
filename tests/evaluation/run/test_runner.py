from __future__ import annotations

import asyncio
import json
from functools import partial
from pathlib import Path

import pytest

from robustrag_integrations.evaluation.run.config import ConfigError
from robustrag_integrations.evaluation.run.journal import JournalError
from robustrag_integrations.evaluation.run.planning import make_plan
from robustrag_integrations.evaluation.run.runner import LocalEngine, RunStopped, evaluate
from robustrag_integrations.evaluation.score.rows import misfit
from robustrag_integrations.evaluation.score.summary import summarise
from robustrag_integrations.models.callable import CallableModel
from tests.evaluation import light
from tests.evaluation.rows import rows_in
from tests.evaluation.worlds import lands_config, untimed


@pytest.fixture
def config(tmp_path):
    return partial(lands_config, tmp_path)


@pytest.fixture
def output(tmp_path):
    return str(tmp_path / "run.jsonl")


class Interrupting:
    """An engine that is interrupted after so many rows, and takes them in another order."""

    def __init__(self, after: int) -> None:
        self._after = after

    def run(self, jobs, on_row) -> None:
        engine = LocalEngine()
        for job in list(jobs)[::-1][: self._after]:
            on_row(asyncio.run(engine.row(job)))
        raise KeyboardInterrupt


def test_a_row_says_all_there_is_to_say(config, output) -> None:
    done = evaluate(config(), output=output)
    header, *rows = rows_in(output)
    assert header["schema"] == "robustrag/eval-run/3"
    assert header["config"]["methods"] == ["vanilla", "voting"]
    assert rows == list(done.rows)
    voted = next(r for r in rows if r["method"] == "voting" and r["attack"]["name"] == "none")
    assert voted["answer"]["text"] == "Strelsau"
    assert voted["scores"]["correct"] == 1.0
    assert voted["certificates"][0]["tau"] == 1.0
    assert voted["cost"]["model_calls"] == 4
    assert [p["planted"] for p in voted["passages"]] == [False] * 4
    hijacked = next(r for r in rows if r["method"] == "vanilla" and r["attack"]["rank"] == "last")
    assert hijacked["scores"]["hijacked"] is True
    assert [p["planted"] for p in hijacked["passages"]] == [False, False, False, True]
    first = [(row["method"], row["task"]) for row in rows if row["timing"]["first"]]
    assert sorted(first) == sorted({(row["method"], row["task"]) for row in rows})


def test_rows_stand_in_the_order_of_data_setup_attack_and_question(config, output) -> None:
    evaluate(config(), output=output)
    places = [(r["task"], r["setup"], r["attack"]["rank"], r["question_id"]) for r in rows_in(output)[1:]]
    setups = list(dict.fromkeys((task, setup) for task, setup, _, _ in places))
    assert setups == [("multiple_choice", "vanilla"), ("multiple_choice", "voting"), ("short_answer", "vanilla")]
    assert [p[3] for p in places[:3]] == ["q0", "q1", "q2"]


@pytest.mark.parametrize("after", [0, 7])
def test_an_interrupted_run_ends_like_an_undisturbed_one(config, output, tmp_path, after) -> None:
    whole = str(tmp_path / "whole.jsonl")
    evaluate(config(), output=whole)
    with pytest.raises(KeyboardInterrupt):
        evaluate(config(), output=output, engine=Interrupting(after))
    assert len(rows_in(output)) == 1 + after
    with open(output, "a") as file:
        file.write('{"schema": "robustrag/ev')  # killed while writing
    done = evaluate(config(), output=output, engine=LocalEngine(concurrency=4))
    assert done.made == len(done.rows) - after
    assert [untimed(r) for r in rows_in(output)] == [untimed(r) for r in rows_in(whole)]


def test_another_setting_adds_rows_and_keeps_the_old_ones(config, output) -> None:
    evaluate(config(), output=output)
    old = {r["key"] for r in rows_in(output)[1:]}
    done = evaluate(config(attacks=["poison"]), output=output)
    kept = {r["key"] for r in rows_in(output)[1:]}
    assert old < kept
    assert {r["attack"]["name"] for r in done.rows} == {"none", "poison"}
    assert done.made == sum(r["attack"]["name"] == "poison" for r in done.rows)


def test_a_failed_row_is_shown_counted_and_tried_again(config, output, monkeypatch) -> None:
    fine = CallableModel(light.answer)
    broken = CallableModel(
        lambda prompt: light.broken(prompt) if "land 1" in prompt else light.answer(prompt), attempts=1
    )
    monkeypatch.setattr(light, "model", broken, raising=False)
    mine = config(models=["python:tests.evaluation.light:model"])
    done = evaluate(mine, output=output)
    failed = [r for r in done.rows if r["error"]]
    assert {r["question_id"] for r in failed} == {"q1"}
    assert done.failed == len(failed) > 0
    assert "no such luck" in failed[0]["error"]["message"]
    assert sum(line.failed for line in summarise(done.rows)) == len(failed)
    monkeypatch.setattr(light, "model", fine)
    again = evaluate(mine, output=output)
    assert (again.made, again.failed) == (len(failed), 0)
    assert len(rows_in(output)) == 1 + len(done.rows)


def test_a_hostile_row_is_named_or_made_again_and_stops_nothing_else(config, output) -> None:
    mine = config(methods=["voting"], tasks=["multiple_choice"], certify=None)
    evaluate(mine, output=output)
    header, row, *others = rows_in(output)
    for name in row:
        changed = {key: value for key, value in row.items() if key != name}
        Path(output).write_text("".join(json.dumps(each) + "\n" for each in (header, changed, *others)))
        if misfit(changed):
            with pytest.raises(JournalError, match="line 2 is not an evaluation row"):
                evaluate(mine, output=output)
            assert rows_in(output)[1] == changed
        else:
            assert len(summarise(evaluate(mine, output=output).rows)) > 0


def test_a_run_in_which_everything_fails_stops_early(config, output) -> None:
    mine = config(models=["python:tests.evaluation.light:broken"], ranks=[1, 2, 3, 4])
    with pytest.raises(RunStopped, match="no such luck"):
        evaluate(mine, output=output)
    assert len(rows_in(output)) == 21


def test_concurrency_and_the_cache_change_no_row(config, output, tmp_path) -> None:
    plain = evaluate(config())
    cached = [evaluate(config(), engine=LocalEngine(str(tmp_path / "cache"), concurrency=n)) for n in (8, 1)]
    for other in cached:
        assert [untimed(r) for r in other.rows] == [untimed(r) for r in plain.rows]
    assert all(r["timing"]["cached_calls"] > 0 for r in cached[1].rows)
    assert all(r["timing"]["cached_calls"] == 0 for r in plain.rows)


def test_a_key_knows_everything_that_decides_a_row(config, tmp_path) -> None:
    def keys(**more):
        return {job.key for job in make_plan(config(**more)).jobs}

    base = keys()
    assert keys() == base
    for other in (
        {"top_k": [3]},
        {"models": ["python:tests.evaluation.light:broken"]},
        {"models": ["openai:m"], "certify": None},
        {"models": [{"name": "openai:m", "base_url": "http://127.0.0.1:1/v1"}], "certify": None},
    ):
        assert keys(**other).isdisjoint(base), other
    assert keys(seed=1) != base
    assert keys(models=["openai:m"]) != keys(models=[{"name": "openai:m", "base_url": "http://127.0.0.1:1/v1"}])
    assert keys(certify=[2]) != base
    assert keys(repeat=2) != base
    assert keys(methods=[{"name": "voting", "passages_per_source": 2}]).isdisjoint(base)


def test_what_does_not_fit_is_said_before_anything_runs(config) -> None:
    with pytest.raises(
        ConfigError,
        match="voting left out: it is for the tasks multiple_choice, and the questions are asked as short_answer",
    ):
        make_plan(config(tasks=[], methods=["voting"]))
    assert any("voting left out" in note for note in make_plan(config(tasks=[])).notes)
    with pytest.raises(ConfigError, match="min_radius=2: certificates are about one vote"):
        evaluate(config(methods=[{"name": "voting", "min_radius": 2}]))
    with pytest.raises(ConfigError, match="decoding left out: it gives no token probabilities"):
        evaluate(config(tasks=["short_answer"], methods=["decoding"]))


def test_a_model_that_samples_is_not_certified(config, monkeypatch) -> None:
    monkeypatch.setattr(light, "model", CallableModel(light.answer, samples=True), raising=False)
    with pytest.raises(ConfigError, match="samples"):
        evaluate(config(models=["python:tests.evaluation.light:model"]))


def test_questions_without_a_target_are_named_and_left_out(config, tmp_path) -> None:
    path = tmp_path / "bare.jsonl"
    path.write_text(json.dumps({"question": "Q?", "answer": "A", "passages": ["A"]}) + "\n{}\n")
    plan = make_plan(config(data=[str(path)], tasks=[], methods=["vanilla"]))
    assert [job.attack.name for job in plan.jobs] == ["none"]
    assert any("without an incorrect answer for pia" in note for note in plan.notes)
    assert any("1 bad row left out" in note for note in plan.notes)


def test_a_metric_that_fails_on_some_answers_costs_these_their_score_and_nothing_else(config) -> None:
    done = evaluate(
        config(methods=["voting"], tasks=["multiple_choice"], attacks=[], metric="tests.evaluation.light:fussy")
    )
    assert done.failed == 0
    failing = [row for row in done.rows if row["answer"]["text"] == "Zenda"]
    assert len(failing) == 1
    assert failing[0]["scores"]["correct"] == 0.0
    assert failing[0]["scores"]["failure"] == "LookupError: who is Zenda?"
    for certificate in failing[0]["certificates"]:
        assert certificate["tau"] == 0.0
    assert [row["scores"]["correct"] for row in done.rows if row not in failing] == [1.0, 1.0]
    [line] = summarise(done.rows)
    assert line.unreadable == 1


@pytest.mark.parametrize(("answers", "correct"), [(["Zenda"], 1.0), (["Zenda", "Tarlen"], 0.0)])
def test_questions_with_several_answers_are_asked_as_lists(tmp_path, answers, correct) -> None:
    passages = [{"text": f"The capital is Zenda. {n}", "source": f"{n}.example"} for n in range(4)]
    row = {"question": "Which capitals are there?", "answer": answers, "several": True, "passages": passages}
    (tmp_path / "several.jsonl").write_text(json.dumps(row) + "\n")
    about = {"data": [str(tmp_path / "several.jsonl")], "tasks": ["list"], "methods": ["consensus"], "attacks": []}
    [made] = evaluate(lands_config(tmp_path, **about, certify=None)).rows
    assert (made["task"], made["metric"], made["scores"]["correct"]) == ("list", "all", correct)
