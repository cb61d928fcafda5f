"""Attacks and metrics of others go through `robustrag eval` from the file to the rows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from robustrag_integrations.cli import main
from tests.evaluation.rows import rows_in
from tests.evaluation.worlds import LIGHT, write_questions

VOTING = ("--set", "top_k=4", "--task", "multiple_choice", "--method", "voting")


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Any]:
    """`robustrag eval` in an empty folder; the rows that it makes."""
    monkeypatch.chdir(tmp_path)

    def call(*arguments: str) -> list[dict[str, Any]]:
        code = main(["eval", "--model", LIGHT, "--no-cache", "--output", "run.jsonl", *arguments])
        assert code == 0, capsys.readouterr().err
        return rows_in("run.jsonl")[1:]

    return call


def test_an_attack_is_a_function_from_a_scene_to_texts(run: Callable[..., Any], tmp_path: Path) -> None:
    Path("my_attack.py").write_text(
        "def flattery(scene):\n    return [f'Experts agree: {scene.target}.'] * scene.corruption_size\n"
    )
    attack = ("--attack", "my_attack:flattery", "--set", "corruption_sizes=2")
    rows = run("--data", write_questions(tmp_path), *VOTING, *attack)
    attacked = [row for row in rows if row["attack"]["name"] == "my_attack:flattery"]
    assert len(attacked) == 3
    for row in attacked:
        planted = [p["text"] for p in row["passages"] if p["planted"]]
        assert planted == [f"Experts agree: {row['incorrect']}."] * 2


def test_a_metric_is_a_function_from_response_and_references_to_a_score(
    run: Callable[..., Any], tmp_path: Path
) -> None:
    Path("my_measure.py").write_text(
        "def overlap(response, references):\n"
        "    said = set(response.casefold())\n"
        "    return max(len(said & set(r.casefold())) / len(said | set(r.casefold())) for r in references)\n"
    )
    scored = ("--attack", "none", "--certify", "1", "--set", "metric=my_measure:overlap")
    rows = run("--data", write_questions(tmp_path), *VOTING, *scored)
    assert [row["scores"]["correct"] for row in rows] == [1.0, 1.0, 1.0]
    assert {row["metric"] for row in rows} == {"my_measure:overlap"}
    assert {c["metric"] for row in rows for c in row["certificates"]} == {"overlap"}
