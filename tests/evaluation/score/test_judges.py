"""Long answers through the command line: graded cleanly, under attack and in certificates, by every kind of judge."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from robustrag_integrations.cli import main
from tests.evaluation import light
from tests.evaluation.worlds import LIGHT, write_long
from tests.helpers.openai_server import LoopbackServer, Reply

GRADER = "python:tests.evaluation.light:grader"
BOTH = "both.json"


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """`robustrag eval` of one request for a long answer in a folder of its own; exit code, output, complaints, rows."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    data = write_long(tmp_path, passages=6)
    Path(BOTH).write_text(json.dumps({"methods": ["vanilla", "keyword"]}), encoding="utf-8")

    def call(*arguments: str, model: str = LIGHT):
        base = ["--data", data, "--model", model, "--set", "top_k=6", "--attack", "pia", "--certify", "1"]
        code = main(["eval", *base, *arguments, "--output", "run.jsonl"])
        said = capsys.readouterr()
        rows = [json.loads(line) for line in Path("run.jsonl").read_text().splitlines()[1:]]
        return code, said.out, said.err, rows

    return call


def test_all_three_scores_of_a_judge_are_in_rows_and_tables(run) -> None:
    code, out, _, rows = run("--set", f"judge={GRADER}", BOTH)
    assert code == 0
    assert [(r["setup"], r["attack"]["name"], r["scores"]["judge"]) for r in rows] == [
        ("vanilla", "none", 80.0),
        ("vanilla", "pia", 10.0),
        ("keyword", "none", 80.0),
        ("keyword", "pia", 80.0),
    ]
    assert not any(r["scores"]["unreadable"] for r in rows)
    [certificate] = rows[2]["certificates"]
    assert certificate["metric"].startswith("LLM judge")
    assert "at least this is the judge's score" in out
    shown = [line.split() for line in out.splitlines()]
    assert ["plain", "RAG", "pia", "10"] in [words[:4] for words in shown]
    assert ["keyword", "pia", "80"] in [words[:3] for words in shown]


def test_a_judge_that_cannot_be_asked_fails_its_rows_and_another_one_makes_rows_of_its_own(run) -> None:
    code, _, err, rows = run("--set", "judge=python:tests.evaluation.light:broken", "--method", "vanilla")
    assert code == 1
    assert "2 rows failed" in err
    assert all("the judge could not be asked" in r["error"]["message"] for r in rows)
    code, _, _, rows = run("--set", f"judge={GRADER}", "--method", "vanilla")
    assert code == 0
    assert [r["scores"]["judge"] for r in rows[:2]] == [80.0, 10.0]


def test_a_judge_behind_a_server_is_asked_there(run) -> None:
    with LoopbackServer(lambda prompt: Reply(light.grader(prompt))) as server:
        code, _, _, rows = run(*("--set", "judge=openai:grader", "--base-url", server.url, "--no-cache", BOTH))
    assert code == 0
    assert [r["scores"]["judge"] for r in rows] == [80.0, 10.0, 80.0, 80.0]
    assert {request["model"] for request in server.requests} == {"grader"}
    assert all(prompt.startswith("You grade answers.") for prompt in server.prompts)
