from __future__ import annotations

import json

import pytest

from robustrag_integrations.cli import main
from robustrag_integrations.models.providers import NamedModel
from tests.helpers.scripted import ScriptedModel

PAPER = ("--method", "keyword", "--set", "alpha=0.3", "--set", "beta=3")
PARIS, ANNA = [f"{i} paris" for i in range(6)], [{"text": "x anna", "source": "s"}] * 3
ROWS = [
    {"question": "Where?", "answer": "Paris", "passages": PARIS, "choices": ["Paris", "Rome"]},
    {"question": "Who?", "answer": ["Anna"], "passages": ANNA, "choices": ["A", "Anna"]},
]


@pytest.fixture
def data(tmp_path):
    path = tmp_path / "questions.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in ROWS), encoding="utf-8")
    return path


@pytest.fixture(autouse=True)
def model(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    scripted = ScriptedModel(
        lambda text: "Paris" if "paris" in text else "Anna", lambda p: "Paris" if "paris" in p.casefold() else "Anna"
    )
    monkeypatch.setattr(NamedModel, "load", lambda self: scripted)
    return scripted


def test_a_summary_per_corruption_size(data, capsys) -> None:
    assert main(["certify", "--data", str(data), *PAPER, "--corruption-size", "1", "3", "--json"]) == 0
    [line] = json.loads(capsys.readouterr().out)["lines"]
    assert line["n"] == 2
    assert [(c["corruption_size"], c["score"]["mean"]) for c in line["certified"]] == [(1, 0.5), (3, 0.0)]
    assert main(["certify", "--data", str(data)]) == 0
    assert "1 injected" in capsys.readouterr().out


def test_output_is_kept_and_gone_on_from(data, tmp_path, capsys, model) -> None:
    out = tmp_path / "out.jsonl"
    command = ["certify", "--data", str(data), "--output", str(out), "--json", "--no-cache"]
    assert main([*command, "--limit", "1"]) == 0
    asked = len(model.asked)
    with out.open("a") as file:
        file.write('{"key": "cut o')
    assert main(command) == 0
    captured = capsys.readouterr()
    assert "1 of 2 rows are in" in captured.err
    assert len(model.asked) < 2 * asked
    header, *rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert header["schema"] == "robustrag/eval-run/3"
    assert [row["certificates"][0]["query"] for row in rows] == ["Where?", "Who?"]
    asked = len(model.asked)
    assert main(command) == 0
    assert len(model.asked) == asked
    assert main([*command, "--attack", "modification"]) == 0  # another setting is another certificate
    assert len(model.asked) > asked


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--method", "consensus", "--set", "eta=1"], "eta: no --method here takes it"),
        (["--method", "keyword", "--set", "alpha=2"], "alpha=2"),
        (["--corruption-size", "-1"], "whole number"),
        (["--method", "decoding", "--model", "openai:x"], "token probabilities"),
    ],
)
def test_wrong_usage_is_exit_code_two(data, capsys, arguments, said) -> None:
    assert main(["certify", "--data", str(data), *arguments]) == 2
    assert said in capsys.readouterr().err
