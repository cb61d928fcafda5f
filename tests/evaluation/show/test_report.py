"""The page about a run as a file, and `robustrag report`, which writes it."""

from __future__ import annotations

import hashlib
import html
import json
import os
import re
import stat
from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest

from robustrag_integrations.cli import main
from robustrag_integrations.evaluation.score.rows import Run, read_run
from robustrag_integrations.evaluation.score.summary import summarise
from robustrag_integrations.evaluation.show import report
from robustrag_integrations.evaluation.show.report import report_page
from robustrag_integrations.evaluation.show.tables import main_tables
from tests.evaluation.runs import write_run


@pytest.fixture(scope="module")
def page(run_file: Path) -> str:
    return report_page(read_run(run_file))


def test_the_policy_allows_the_style_of_the_page_and_nothing_points_anywhere_else(page: str) -> None:
    [policy] = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)
    [style] = re.findall(r"<style>(.*?)</style>", page, re.S)
    digest = b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert policy.startswith(f"default-src 'none'; style-src 'sha256-{digest}'; ")
    assert "unsafe" not in policy
    assert page.index("Content-Security-Policy") < page.index("<title>")
    assert re.findall(r'\b(?:src|href|action|data)="([^"]*)"', page) == ["data:,"]
    for absent in ("<script", "http:", "https:", "@import", "url(", " style="):
        assert absent not in page


def test_the_tables_say_what_the_summary_says_and_every_row_is_listed(
    page: str, made_rows: list[dict[str, Any]]
) -> None:
    shown = html.unescape(page)
    for table in main_tables(summarise(made_rows)):
        for cell in {*table.header, *(cell for row in table.rows for cell in row)}:
            assert f">{cell}</t" in shown
    assert "1 row, in no rate" in page
    assert page.count('<details class="line">') == len(made_rows)


def test_a_page_keeps_to_its_size_and_says_what_it_left_out(
    made_rows: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = tuple({**made_rows[i % 30], "key": str(i)} for i in range(300))
    monkeypatch.setattr(report, "BYTES", 200_000)
    page = report_page(Run("run", rows=rows))
    assert len(page) < 1_000_000
    left = re.search(r"(\d+) of 300 rows are left out .*: the page is limited to 0.2 MB\.", page)
    assert left is not None
    assert page.count('<details class="line">') == 300 - int(left[1]) > 0


@pytest.fixture
def run_path(tmp_path: Path, made_rows: list[dict[str, Any]]) -> Path:
    return write_run(tmp_path / "run.jsonl", made_rows[:6])


def test_bad_and_torn_lines_are_told_and_the_page_is_written(
    run_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run_path.write_bytes(run_path.read_bytes() + b"nonsense\n{torn")
    assert main(["report", str(run_path), "-o", str(run_path.with_name("out.html"))]) == 0
    told = capsys.readouterr().err
    assert "2 lines that cannot be read are left out" in told
    assert "line 8" in told
    assert run_path.with_name("out.html").exists()


def test_a_file_that_is_not_a_run_fails_with_a_reason_and_writes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "notes.jsonl"
    path.write_text(json.dumps({"key": "a", "certificates": []}) + "\n")
    assert main(["report", str(path)]) == 1
    assert "is not a run" in capsys.readouterr().err
    assert not path.with_suffix(".html").exists()


def test_a_new_page_can_be_read_by_its_owner_alone(run_file: Path, tmp_path: Path) -> None:
    umask = os.umask(0)
    try:
        assert main(["report", str(run_file), "-o", str(tmp_path / "page.html")]) == 0
    finally:
        os.umask(umask)
    assert stat.S_IMODE((tmp_path / "page.html").stat().st_mode) == 0o600
