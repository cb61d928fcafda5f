"""`--settings FILE` in the commands that answer."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from robustrag_integrations import CallableModel, Passage, from_settings
from tests.evaluation import light

LIGHT = "python:tests.evaluation.light:answer"
FILE = """\
aggregation: keyword
settings: {alpha: 0.4, beta: 2, quorum: 0.75}
votes: {group_by: passage}
retrieval: {top_k: 3}
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "settings.yaml"
    path.write_text(FILE)
    return path


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "lands.jsonl"
    rows = [
        {"question": f"What is the capital of land {n}?", "answer": "Strelsau", "incorrect": "Zenda",
         "passages": [f"The capital of land {n} is Strelsau."] * 5}
        for n in range(3)
    ]  # fmt: skip
    path.write_text("\n".join(map(json.dumps, rows)))
    return path


def test_ask_reads_all_of_the_file_as_the_core_does(ask, docs: Path, file: Path) -> None:
    found = ask("Who runs the mill?", "--docs", docs, "--settings", file, "--json").data
    told = found["answer"]["settings"]
    assert (told["alpha"], told["beta"], told["quorum"]) == ("2/5", 2, 0.75)
    assert len(found["passages"]) == 3
    core = from_settings(CallableModel(light.answer), file)
    wanted = core.answer("Who runs the mill?", [Passage(p["text"]) for p in found["passages"]])
    assert wanted.to_dict()["settings"] == {k: v for k, v in told.items() if k != "capabilities"}
    assert found["answer"]["radius"] == wanted.radius


def test_what_is_typed_wins_even_where_it_is_the_default(ask, docs: Path, file: Path) -> None:
    typed = ("--set", "beta=3", "--set", "alpha=0.3", "--top-k", 5, "--group-by", "origin")
    found = ask("Who runs the mill?", "--docs", docs, "--settings", file, "--json", *typed).data
    told = found["answer"]["settings"]
    assert (told["alpha"], told["beta"], told["quorum"]) == ("3/10", 3, 0.75)
    assert ["note0.txt"] in [group["origins"] for group in found["answer"]["groups"]]
    assert len(found["passages"]) == 5


@pytest.mark.parametrize("command_line", [["ask", "Who?", "--docs", "."], ["eval"]])
def test_a_wrong_file_ends_every_command_with_its_name_and_key(command, tmp_path: Path, command_line) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("aggregation: keyword\nsettings: {aplha: 1}")
    result = command(*command_line, "--settings", path)
    assert result.code == 2
    assert "mine.yaml: settings.aplha: unknown key; did you mean 'alpha'?" in result.err


def test_eval_compares_files_with_each_other_and_with_no_defence(command, data: Path, file: Path, tmp_path) -> None:
    other = tmp_path / "other.yaml"
    other.write_text("aggregation: consensus\ntask: short_answer\nsettings: {min_support: 1}\n")
    how = ("--model", LIGHT, "--output", tmp_path / "rows.jsonl", "--no-cache", "--attack", "none")
    result = command("eval", "--data", data, "--settings", file, other, *how, "--json")
    assert result.code == 0, result.err
    lines = {line["setup"]: line for line in result.data["lines"]}
    assert list(lines) == ["vanilla", "keyword (settings.yaml)", "consensus (other.yaml)"]
    assert lines["keyword (settings.yaml)"]["settings"]["beta"] == 2
    assert lines["consensus (other.yaml)"]["settings"]["min_support"] == 1
    assert {line["top_k"] for line in lines.values()} == {3}
