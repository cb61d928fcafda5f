from __future__ import annotations

import gzip
import json

import pytest

from robustrag_integrations.cli import certify, main
from robustrag_integrations.metrics import contains_answer
from tests.helpers.scripted import ScriptedModel

ROWS = [
    {
        "question": "Where?",
        "answer": "Paris",
        "passages": [f"{i} paris" for i in range(6)],
        "choices": ["Paris", "Rome"],
    },
    {
        "question": "Who?",
        "answer": ["Anna"],
        "passages": [{"text": "x anna", "source": "s"}] * 3,
        "choices": ["A", "Anna"],
    },
]


@pytest.fixture
def data(tmp_path):
    path = tmp_path / "questions.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in ROWS), encoding="utf-8")
    return path


@pytest.fixture(autouse=True)
def model(monkeypatch):
    scripted = ScriptedModel(
        lambda text: "Paris" if "paris" in text else "Anna", lambda p: "Paris" if "paris" in p.casefold() else "Anna"
    )
    monkeypatch.setattr(certify, "load_model", lambda *args, **kwargs: scripted)
    return scripted


def test_a_summary_per_corruption_size(data, capsys) -> None:
    assert main(["certify", str(data), "--corruption-size", "1", "3", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["questions"] == 2
    assert [(s["corruption_size"], s["mean_tau"]) for s in shown["sizes"]] == [(1, 0.5), (3, 0.0)]
    assert main(["certify", str(data)]) == 0
    assert "mean tau" in capsys.readouterr().out


def test_output_is_kept_and_gone_on_from(data, tmp_path, capsys, model) -> None:
    out = tmp_path / "out.jsonl"
    command = ["certify", str(data), "--output", str(out), "--json"]
    assert main([*command, "--limit", "1"]) == 0
    asked = len(model.asked)
    with out.open("a") as file:
        file.write('{"key": "cut o')
    assert main(command) == 0
    captured = capsys.readouterr()
    assert "1 of 2 questions are in" in captured.err
    assert len(model.asked) < 2 * asked
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    assert [line["certificates"][0]["query"] for line in lines] == ["Where?", "Who?"]
    asked = len(model.asked)
    assert main(command) == 0
    assert len(model.asked) == asked
    assert main([*command, "--attack", "modification"]) == 0  # another setting is another certificate
    assert len(model.asked) > asked


def test_gzipped_data_and_votes(tmp_path, capsys) -> None:
    path = tmp_path / "q.jsonl.gz"
    path.write_bytes(gzip.compress(json.dumps(ROWS[0]).encode()))
    assert main(["certify", str(path), "--defense", "voting", "--metric", "exact", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["sizes"][0]["mean_tau"] == 1.0
    assert contains_answer("Paris", ["Paris"]) == 1


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("[1]", "line 1: expected an object"),
        ("{}", "line 1: there is no 'answer'"),
        ("not json", "line 1"),
        ('{"question": "q", "answer": "a", "passages": "p"}', "passages must be a list"),
        ('{"question": "q", "answer": [], "passages": []}', "answer must be"),
        ("", "there is no question"),
    ],
)
def test_bad_data_is_named_by_line(tmp_path, capsys, line, said) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_text(line, encoding="utf-8")
    assert main(["certify", str(path)]) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--eta", "1"], "--eta does nothing"),
        (["--alpha", "2"], "alpha=2"),
        (["--corruption-size", "-1"], "whole number"),
        (["--defense", "decoding", "--model", "openai:x"], "token probabilities"),
    ],
)
def test_wrong_usage_is_exit_code_two(data, capsys, arguments, said) -> None:
    assert main(["certify", str(data), *arguments]) == 2
    assert said in capsys.readouterr().err


def test_a_missing_file_is_wrong_usage(capsys) -> None:
    assert main(["certify", "nowhere.jsonl"]) == 2
    assert "cannot read 'nowhere.jsonl'" in capsys.readouterr().err


def test_the_papers_layout_is_certified_as_well(tmp_path, capsys) -> None:
    passages = [{"title": "t", "text": f"{i} paris", "link": "https://a"} for i in range(6)]
    row = {"question": "Where?", "correct answer": ["Paris"], "context": passages, "incorrect answer": "Rome"}
    path = tmp_path / "paper.json.gz"
    path.write_bytes(gzip.compress(json.dumps([row]).encode()))
    assert main(["certify", str(path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["sizes"][0]["mean_tau"] == 1.0


def test_another_model_under_the_same_name_is_another_certificate(data, tmp_path, capsys, model, monkeypatch) -> None:
    command = ["certify", str(data), "--output", str(tmp_path / "out.jsonl")]
    for fingerprint in ("old weights", "new weights"):
        model.asked.clear()
        monkeypatch.setattr("robustrag_integrations.models.named.NamedModel.fingerprint", lambda _, f=fingerprint: f)
        assert main(command) == 0
        assert model.asked
    capsys.readouterr()


@pytest.mark.parametrize(
    "line",
    [
        '{"key": "a", "certificates": [{}]}',
        '{"key": "a", "certificates": [{"tau": 1, "certified": true, "corruption_size": "1", "model_calls": 0}]}',
        '{"key": "a", "certificates": [{"tau": NaN, "certified": true, "corruption_size": 1, "model_calls": 0}]}',
        '{"key": "a", "certificates": "none"}',
        '{"certificates": []}',
        '["key"]',
        "[" * 100_000,
    ],
)
def test_an_output_that_somebody_else_has_written_to_is_refused_and_left_alone(data, tmp_path, capsys, line) -> None:
    out = tmp_path / "out.jsonl"
    out.write_text(line + "\n")
    assert main(["certify", str(data), "--output", str(out)]) == 2
    assert "line 1" in capsys.readouterr().err
    assert out.read_text() == line + "\n"
