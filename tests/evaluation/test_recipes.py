"""The recipes of CONTRIBUTING for an attack, a metric and a data layout, followed through `robustrag eval`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from robustrag_integrations.cli import main
from robustrag_integrations.evaluation.data import questions
from robustrag_integrations.evaluation.data.questions import EvalQuestion, Layout
from robustrag_integrations.grouping.passages import Passage
from tests.evaluation.rows import rows_in
from tests.evaluation.worlds import LIGHT, write_questions


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """`robustrag eval` in an empty folder; the rows that it makes."""
    monkeypatch.chdir(tmp_path)

    def call(*arguments: str) -> list[dict[str, Any]]:
        base = ["--model", LIGHT, "--top-k", "4", "--task", "mc", "--defense", "voting", "--no-cache"]
        code = main(["eval", *base, *arguments, "--output", "run.jsonl"])
        assert code == 0, capsys.readouterr().err
        return rows_in("run.jsonl")[1:]

    return call


def test_an_attack_is_a_function_from_a_scene_to_texts(run, tmp_path) -> None:
    Path("mine.py").write_text(
        "def flattery(scene):\n    return [f'Experts agree: {scene.target}.'] * scene.corruption_size\n"
    )
    rows = run("--data", write_questions(tmp_path), "--attack", "mine.py:flattery", "--set", "corruption_sizes=2")
    attacked = [row for row in rows if row["attack"]["name"] == "mine.py:flattery"]
    assert len(attacked) == 3
    for row in attacked:
        planted = [p["text"] for p in row["passages"] if p["planted"]]
        assert planted == [f"Experts agree: {row['incorrect']}."] * 2


def test_a_metric_is_a_function_from_response_and_references_to_a_score(run, tmp_path) -> None:
    Path("mine.py").write_text(
        "def overlap(response, references):\n"
        "    said = set(response.casefold())\n"
        "    return max(len(said & set(r.casefold())) / len(said | set(r.casefold())) for r in references)\n"
    )
    rows = run("--data", write_questions(tmp_path), "--attack", "none", "--certify", "1", "--metric", "mine.py:overlap")
    assert [row["scores"]["correct"] for row in rows] == [1.0, 1.0, 1.0]
    assert {row["metric"] for row in rows} == {"mine.py:overlap"}
    assert {c["metric"] for row in rows for c in row["certificates"]} == {"overlap"}


def test_a_data_layout_is_a_function_and_a_line_in_the_table(run, monkeypatch) -> None:
    def quiz_row(row: Mapping[str, Any]) -> tuple[EvalQuestion, bool]:
        if not isinstance(row["ask"], str):
            raise ValueError("ask must be a text")
        texts = tuple(Passage(text) for text in row["hits"])
        return EvalQuestion("", row["ask"], (row["key"],), row["trap"], texts, (row["key"], row["trap"])), False

    monkeypatch.setattr(questions, "LAYOUTS", (Layout(frozenset({"ask"}), quiz_row), *questions.LAYOUTS))
    good = {"ask": "What is the capital of land 0?", "key": "Strelsau", "trap": "Zenda"}
    good["hits"] = ["The capital of land 0 is Strelsau."] * 4
    Path("quiz.jsonl").write_text(json.dumps(good) + "\n" + json.dumps({**good, "ask": 7}) + "\n")
    clean, attacked = run("--data", "quiz.jsonl", "--attack", "pia")
    assert (clean["question"], clean["answers"], clean["scores"]["correct"]) == (good["ask"], ["Strelsau"], 1.0)
    assert attacked["passages"][0]["planted"]
