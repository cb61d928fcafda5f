"""`robustrag report` on the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from robustrag_integrations.cli import main
from tests.evaluation.runs import write_run


@pytest.fixture
def run_path(tmp_path: Path, made_rows: list[dict[str, Any]]) -> Path:
    return write_run(tmp_path / "run.jsonl", made_rows[:6])


def test_a_run_becomes_a_page_beside_it(run_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(run_path)]) == 0
    page = run_path.with_suffix(".html")
    assert "</html>" in page.read_text(encoding="utf-8")
    assert capsys.readouterr().out.startswith(f"{page}: 6 rows, ")


def test_bad_and_torn_lines_are_told_and_the_page_is_written(
    run_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run_path.write_bytes(run_path.read_bytes() + b"nonsense\n{torn")
    assert main(["report", str(run_path), "-o", str(run_path.with_name("out.html"))]) == 0
    told = capsys.readouterr().err
    assert "1 bad line left out; line " in told
    assert "line 8" in told
    assert "the last line is torn" in told
    assert run_path.with_name("out.html").exists()


def test_a_file_that_is_not_a_run_fails_with_a_reason_and_writes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "notes.jsonl"
    path.write_text(json.dumps({"key": "a", "certificates": []}) + "\n")
    assert main(["report", str(path)]) == 1
    assert "is not a run" in capsys.readouterr().err
    assert not path.with_suffix(".html").exists()


@pytest.mark.parametrize(
    ("output", "message"),
    [(".", "is a folder"), ("none/x.html", "there is no folder"), ("run.jsonl", "is the run itself")],
)
def test_a_place_that_cannot_be_written_is_wrong_usage(
    run_path: Path, capsys: pytest.CaptureFixture[str], output: str, message: str
) -> None:
    before = run_path.read_bytes()
    assert main(["report", str(run_path), "-o", str(run_path.parent / output)]) == 2
    assert message in capsys.readouterr().err
    assert run_path.read_bytes() == before


def test_a_missing_run_is_wrong_usage(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(tmp_path / "none.jsonl")]) == 2
    assert "cannot open" in capsys.readouterr().err
