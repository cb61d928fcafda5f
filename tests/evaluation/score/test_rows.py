"""Reading a run's file: whole rows only, everything else reported, nothing run."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from robustrag_integrations.evaluation.score.rows import NotARunError, misfit, read_run
from tests.evaluation.rows import row
from tests.evaluation.runs import HEADER, write_run


def _lines(*lines: str | bytes) -> bytes:
    return b"".join(line if isinstance(line, bytes) else line.encode() + b"\n" for line in lines)


def test_rows_and_header_are_read_and_a_torn_last_line_is_left_out(
    tmp_path: Path, made_rows: list[dict[str, Any]]
) -> None:
    path = write_run(tmp_path / "run.jsonl", made_rows[:3])
    path.write_bytes(path.read_bytes() + json.dumps(made_rows[3]).encode()[:200])
    run = read_run(path)
    assert [r["key"] for r in run.rows] == [r["key"] for r in made_rows[:3]]
    assert run.header["version"] == HEADER["version"]
    assert [str(bad)[:16] for bad in run.bad] == ["line 5: not JSON"]


def test_bad_lines_are_reported_by_number_and_the_rest_is_kept(tmp_path: Path, made_rows: list[dict[str, Any]]) -> None:
    good = json.dumps(made_rows[0])
    broken = {**made_rows[1], "passages": [{"text": 7}]}
    other = {**made_rows[2], "schema": "robustrag/eval/9"}
    path = tmp_path / "run.jsonl"
    path.write_bytes(
        _lines("{not json", good, "[1]", json.dumps(broken), b"\xff\xfe\n", '{"x": NaN}', json.dumps(other), "[" * 9000)
    )
    run = read_run(path)
    assert [r["key"] for r in run.rows] == [made_rows[0]["key"]]
    assert [b.line for b in run.bad] == [1, 3, 4, 5, 6, 7, 8]
    reasons = [b.reason for b in run.bad]
    assert "must be an object, got list" in reasons[1]
    assert "passages[0].text must be str, got 7" in reasons[2]
    assert "NaN is not JSON" in reasons[4]
    assert "'robustrag/eval/9'" in reasons[5]


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        ([], "must be an object"),
        ({"schema": "other"}, "its schema is 'other'"),
        ({**row(2), "key": None}, "key must be str"),
        ({**row(2), "scores": None}, "there is no 'scores'"),
        (row(2, scores={"correct": "1"}), "scores.correct"),
        (row(2, answer={"radius": 10**400}), "beyond 1e\\+15"),
        (row(2, timing={"seconds": "fast"}), "timing.seconds"),
        ({name: value for name, value in row(2).items() if name != "error"}, "there is no 'error'"),
    ],
)
def test_what_is_not_a_row_is_named(bad: dict[str, object], said: str) -> None:
    found = misfit(bad)
    assert found is not None
    assert re.search(said, found)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "there is nothing in it"),
        (b"\n\n", "there is nothing in it"),
        (b'{"key": "x", "certificates": []}\n', "its schema is None"),
        (b"question,answer\n1,2\n", "not JSON"),
        (b"\x89PNG\r\n\x1a\n\x00", "not UTF-8"),
    ],
    ids=["empty", "blank", "certificates", "csv", "picture"],
)
def test_a_file_that_is_no_run_is_refused_with_what_to_do(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "other"
    path.write_bytes(content)
    with pytest.raises(NotARunError, match=message) as raised:
        read_run(path)
    assert "give the file that `robustrag eval` wrote" in str(raised.value)
