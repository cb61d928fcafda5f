"""`robustrag tune`: from questions to a settings file, without asking twice, and resumed after an interruption."""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml

from robustrag_integrations import load_settings
from robustrag_integrations.evaluation.tune.tuning import halves_of, text_key
from tests.evaluation import light

QUESTIONS = 10
ASKED: Counter[str] = Counter()


def counting(prompt: str) -> str:
    """The light model; counts what it is asked."""
    ASKED[prompt] += 1
    if (most := os.environ.get("TUNE_DIES_AFTER")) and ASKED.total() > int(most):
        raise KeyboardInterrupt
    return light.answer(prompt)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Questions with from three to five of six sources that are right, and two that say the same lie."""
    path = tmp_path / "lands.jsonl"
    rows = []
    for n in range(QUESTIONS):
        said = ["Strelsau"] * (3 + n % 3) + ["Zenda"] * 2
        passages = [
            {"text": f"The capital of land {n} is {city}. Page {i}.", "source": f"https://s{i}.example/a"}
            for i, city in enumerate(said)
        ]
        question = f"What is the capital of land {n}?"
        rows.append({"question": question, "answer": "Strelsau", "incorrect": "Zenda", "passages": passages})
    path.write_text("\n".join(map(json.dumps, rows)))
    return path


@pytest.fixture
def tune(command, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The command on a small grid, in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    ASKED.clear()

    def run(*more: object, grid: tuple[object, ...] = ("--alpha", 0.3, 0.6, "--beta", 2, 4)):
        method = ("--defense", "keyword", *grid)
        model = ("--model", "python:tests.cli.test_tune:counting", "--cache", tmp_path / "cache")
        return command("tune", "--data", data, *method, *model, *more)

    return run


def test_a_file_is_written_that_says_what_was_chosen_and_on_how_many_questions(tune, tmp_path: Path) -> None:
    result = tune("--json")
    assert result.code == 0, result.err
    found = result.data
    saved = load_settings(tmp_path / "settings.yaml")
    assert len(found["candidates"]) == 4
    chosen = found["chosen"]["settings"]
    assert {name: saved.options[name] for name in ("alpha", "beta")} == {n: chosen[n] for n in ("alpha", "beta")}
    assert (saved.aggregation, saved.options["task"], saved.top_k) == ("keyword", "short_answer", 10)
    assert saved.votes == {"group_by": "origin"}
    assert (found["chosen"]["accuracy"]["n"], found["held_out"]["accuracy"]["n"]) == (5, 5)
    text = (tmp_path / "settings.yaml").read_text()
    assert yaml.safe_load(text)["settings"]["beta"] == saved.options["beta"]
    comments = [line for line in text.splitlines() if line.startswith("#")]
    assert any("on 5 questions (accuracy 100.0% [47.8%, 100.0%], ecacc 1 " in line for line in comments)
    assert any("held out: 5 questions that had no say: accuracy" in line for line in comments)
    assert "5 questions are few" in text


def test_only_the_chosen_settings_see_the_held_out_half(tune, tmp_path: Path) -> None:
    found = tune("--json").data
    rows = [json.loads(line) for line in (tmp_path / "tune.jsonl").read_text().splitlines()[1:]]
    halves = halves_of([row["question"] for row in rows], 0)
    asked: dict[str, set[str]] = {}
    for row in rows:
        asked.setdefault(text_key(row["question"]), set()).add(row["setup"])
    assert {len(asked[question]) for question in halves.choosing} == {4}
    assert {frozenset(asked[q]) for q in halves.held_out} == {frozenset({found["chosen"]["label"]})}


@pytest.mark.parametrize("rows_at_a_time", [1, 4])
def test_every_isolated_prompt_is_asked_once_and_the_estimate_bounds_all_calls(tune, rows_at_a_time: int) -> None:
    said = tune("--estimate")
    assert (said.code, ASKED.total()) == (0, 0)
    isolated, final = (int(said.err.split(f" {kind} calls")[0].split()[-1]) for kind in ("isolated", "final"))
    assert isolated == sum(5 + n % 3 for n in range(QUESTIONS))
    assert tune("--concurrency", rows_at_a_time).code == 0
    passages = {prompt: count for prompt, count in ASKED.items() if "Page" in prompt}
    assert (len(passages), set(passages.values())) == (isolated, {1})
    assert ASKED.total() - isolated <= final


def test_it_goes_on_where_it_was_interrupted_and_ends_with_the_same_files(
    tune, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TUNE_DIES_AFTER", "20")
    stopped = tune()
    assert stopped.code == 130
    assert "Run the same command again to resume" in stopped.err
    assert not (tmp_path / "settings.yaml").exists()
    monkeypatch.delenv("TUNE_DIES_AFTER")
    assert tune().code == 0
    assert max(ASKED.values()) <= 2  # the one that was under way
    rows, settings = (tmp_path / "tune.jsonl").read_text(), (tmp_path / "settings.yaml").read_text()
    again = tune()
    assert again.code == 0
    assert "0 of them new" in again.err
    assert ((tmp_path / "tune.jsonl").read_text(), (tmp_path / "settings.yaml").read_text()) == (rows, settings)


def test_another_choice_does_not_replace_a_file_silently_and_asks_nothing_again(tune, tmp_path: Path) -> None:
    assert tune().code == 0
    before, asked = (tmp_path / "settings.yaml").read_text(), ASKED.total()
    other = tune("--prefer", "accuracy")
    assert (other.code, (tmp_path / "settings.yaml").read_text()) == (1, before)
    assert "was left as it is; run again with --overwrite" in other.err
    assert tune("--prefer", "accuracy", "--overwrite").code == 0
    assert (tmp_path / "settings.yaml").read_text() != before
    assert ASKED.total() == asked


def test_the_table_marks_what_was_chosen(tune, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")  # all columns fit, however long the times on a busy machine are
    result = tune()
    lines = result.out.splitlines()
    assert sum(line.startswith(">") for line in lines) == 2  # the line, and what it means
    assert lines[0].split()[:4] == ["settings", "accuracy", "ecacc", "1"]
    assert "the best of 4 on its own questions" in result.out


def test_vote_rules_group_sizes_and_numbers_of_passages_are_swept(tune) -> None:
    grid = ("--alpha", 0.3, "--beta", 2, "--group-by", "origin", "passage", "--group-size", 1, 2, "--top-k", 3, 5)
    found = tune("--json", grid=grid).data
    rules = {(c["settings"]["group_by"], c["settings"]["group_size"], c["top_k"]) for c in found["candidates"]}
    assert rules == {(by, size, k) for by, size in (("origin", 1), ("passage", 1), ("passage", 2)) for k in (3, 5)}


def test_a_grid_that_is_not_given_is_the_registrys_for_every_method_of_the_task(command, data: Path) -> None:
    result = command("tune", "--data", data, "--model", "python:tests.cli.test_tune:counting", "--estimate")
    assert result.code == 0, result.err
    assert "robustrag: 19 settings on 5 questions" in result.err  # 4 x 4 of keyword, 3 of consensus


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        (("--gamma", 0.9), "--gamma does nothing here; it is a setting of --defense decoding"),
        (("--alpha", 3), "alpha=3.0 must lie in [0, 1]"),
        (("--corruption", 9), "'9' is not a whole number from 1 to 5"),
        (("--limit", 3), "3 questions are too few to choose settings with"),
        (("--write", "nowhere/settings.yaml"), "name a file in a folder that exists"),
    ],
)
def test_what_makes_no_sense_is_refused_before_anything_is_asked(tune, typed, said: str) -> None:
    result = tune(*typed, grid=())
    assert result.code == 2
    assert said in result.err
    assert not ASKED


def test_where_nothing_is_right_no_settings_are_written(tune, tmp_path: Path, data: Path) -> None:
    data.write_text(data.read_text().replace('"answer": "Strelsau"', '"answer": "Hentzau"'))
    result = tune()
    assert result.code == 1
    assert "no settings gave a right answer, so that none were written" in result.err
    assert not (tmp_path / "settings.yaml").exists()


def test_options_are_voted_on_with_the_methods_for_choices(command, data: Path, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    rows = [{**json.loads(line), "choices": ["Strelsau", "Zenda"]} for line in data.read_text().splitlines()]
    data.write_text("\n".join(map(json.dumps, rows)))
    model = ("--model", "python:tests.cli.test_tune:counting", "--no-cache")
    result = command("tune", "--data", data, "--task", "mc", *model, "--group-size", 1, 2, "--json")
    assert result.code == 0, result.err
    assert {c["defense"] for c in result.data["candidates"]} == {"voting"}
    assert load_settings(tmp_path / "settings.yaml").options["task"] == "multiple_choice"
