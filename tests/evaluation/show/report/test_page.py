"""The page as a file: self-contained, closed by its policy, bounded, and written whole or not at all."""

from __future__ import annotations

import hashlib
import html
import json
import os
import re
from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from robustrag_integrations.evaluation.score.summary import summarise
from robustrag_integrations.evaluation.show.lines import summary_tables
from robustrag_integrations.evaluation.show.report import ReportError, Run, read_run, write_report
from robustrag_integrations.evaluation.show.report import page as page_module
from robustrag_integrations.evaluation.show.report.embedding import json_text
from robustrag_integrations.evaluation.show.report.page import report_page
from tests.evaluation.runs import write_run


@pytest.fixture(scope="module")
def page(run_file: Path) -> str:
    return report_page(read_run(run_file))


def _data(page: str, name: str) -> Any:
    [found] = re.findall(rf'<script type="application/json" id="{name}">(.*?)</script>', page, re.S)
    return json.loads(found)


def test_the_policy_names_exactly_the_script_and_the_style_of_the_page(page: str) -> None:
    [policy] = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)
    for kind, directive in (("script", "script-src"), ("style", "style-src")):
        [inline] = re.findall(rf"<{kind}>(.*?)</{kind}>", page, re.S)
        digest = b64encode(hashlib.sha256(inline.encode()).digest()).decode()
        assert f"{directive} 'sha256-{digest}'" in policy
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy
    assert "http" not in policy
    assert page.index("Content-Security-Policy") < page.index("<title>")


def test_nothing_on_the_page_points_anywhere_else(page: str) -> None:
    without_text = re.sub(r'<script type="application/json".*?</script>', "", page, flags=re.S)
    named = set(re.findall(r'(?:https?:)?//[^\s"\'<>)]+', without_text))
    assert {n for n in named if n.startswith("http")} <= {"http://www.w3.org/2000/svg"}
    assert re.findall(r'\b(?:src|href|action|data)="([^"]*)"', without_text) == ["data:,", "#questions"]
    assert "@import" not in page
    assert "url(" not in page
    assert " style=" not in without_text


def test_hostile_rows_add_no_element_to_the_page(dangerous_rows: list[dict[str, Any]], page: str) -> None:
    hostile = report_page(Run("</title><script>x</script>", rows=tuple(dangerous_rows)))
    hostile.encode("utf-8")
    assert len(re.findall(r"<script>", hostile)) == 1
    assert len(re.findall(r"<style>", hostile)) == 1
    assert len(re.findall(r"<!--", hostile)) == 0
    known = set(re.findall(r"<([a-zA-Z!/][\w-]*)", page))
    assert set(re.findall(r"<([a-zA-Z!/][\w-]*)", hostile)) <= known
    for block in re.findall(r'<script type="application/json" id="([\w-]+)">', hostile):
        _data(hostile, block)


@settings(deadline=None)
@given(st.recursive(st.text(), lambda inner: st.lists(inner, max_size=3), max_leaves=4))
def test_embedded_data_comes_back_and_cannot_end_its_element(data: Any) -> None:
    written = json_text(data)
    assert not re.search("[<>&\u2028\u2029]", written)
    assert json.loads(written) == data


def test_what_is_put_into_the_page_is_text_and_not_looked_at_again(made_rows: list[dict[str, Any]]) -> None:
    hostile = "{{ 7 * 7 }}{% for x in y %}<b>\u202e"
    versions: dict[str, Any] = {hostile: hostile, "items": 1}
    rows = tuple({**row, "setup": hostile, "dataset": hostile} for row in made_rows[:4])
    shown = report_page(Run(hostile, {"versions": versions, "config": {"layout": "paper-table2"}}, rows))
    assert "<b>\u202e" not in shown
    assert "\u202e" not in shown
    assert shown.count("{{ 7 * 7 }}{% for x in y %}&lt;b&gt;⟨U+202E⟩") > 4
    for odd in (None, [1], "text", {}, {"a": None}):
        assert "</html>" in report_page(Run("run", {"versions": odd}, rows))


def test_every_row_can_be_found_by_its_filters(page: str, made_rows: list[dict[str, Any]]) -> None:
    listed = _data(page, "lines")
    assert listed["filters"] == ["dataset", "model", "setup", "attack", "outcome"]
    assert len(listed["lines"]) == len(made_rows)
    select = re.search(r'<select name="setup">(.*?)</select>', page)
    assert select is not None
    names = re.findall(r'<option value="\d+">([^<]*)</option>', select[1])
    assert [names[line["f"][2]] for line in listed["lines"]] == [row["setup"] for row in made_rows]


def test_the_tables_say_what_the_summary_says(page: str, made_rows: list[dict[str, Any]]) -> None:
    [table] = summary_tables(summarise(made_rows))
    shown = html.unescape(page)
    for cell in {*table.header, *(cell for row in table.rows for cell in row)}:
        assert f">{cell}</t" in shown
    assert "1 row, in no rate" in page


def test_passages_are_kept_once_and_cut_where_the_limit_says(made_rows: list[dict[str, Any]]) -> None:
    long = "needle " + "hay " * 2000
    rows = tuple({**r, "passages": [{**p, "text": long} for p in r["passages"]]} for r in made_rows[:20])
    page = report_page(Run("run", rows=rows))
    assert sum(block.count("needle") for block in re.findall(r'<script type="application/json".*?</script>', page)) == 1
    assert "cut: 8,007 characters, the first 1,500 are shown" in page


def test_readers_without_scripts_are_told_that_the_list_needs_them(made_rows: list[dict[str, Any]]) -> None:
    shown = report_page(Run("run", rows=tuple(made_rows)))
    assert f"The list of {len(made_rows)} rows, its filters and its details need scripts." in shown
    assert "asr" in shown.partition('id="questions"')[0]


def test_a_page_keeps_to_its_size_and_says_what_it_left_out(
    made_rows: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = tuple(
        {**made_rows[i % 30], "key": str(i), "passages": [{**p, "text": f"{i}-{n} " + "x" * 1400} for n, p in
         enumerate(made_rows[i % 30]["passages"])]}
        for i in range(300)
    )  # fmt: skip
    monkeypatch.setattr(page_module, "BYTES", 1_000_000)
    monkeypatch.setattr(page_module, "LINES", 250)
    page = report_page(Run("run", rows=rows))
    assert len(page) < 1_500_000
    assert "50 of 300 rows are not listed" in page
    assert re.search(r"The details of \d+ rows are left out: the page is limited to 1 MB\.", page)
    assert 'id="row-0"' in page
    assert 'id="row-249"' not in page


def test_what_was_wrong_with_the_file_stands_on_the_page(tmp_path: Path, made_rows: list[dict[str, Any]]) -> None:
    path = write_run(tmp_path / "run.jsonl", made_rows[:1])
    path.write_bytes(path.read_bytes() + b"<b>broken\n{torn")
    page = report_page(read_run(path))
    assert "line 3: not JSON" in page
    assert "The last line is torn" in page
    assert "2 lines that cannot be read" in page
    assert "<b>broken" not in page


def test_the_same_run_gives_the_same_page(run_file: Path) -> None:
    assert report_page(read_run(run_file)) == report_page(read_run(run_file))


def test_a_page_replaces_the_old_one_whole_and_leaves_no_draft(run_file: Path, tmp_path: Path) -> None:
    target = tmp_path / "report.html"
    target.write_text("old")
    assert write_report(read_run(run_file), target) == target
    assert target.read_text(encoding="utf-8").startswith("<!doctype html>")
    assert os.listdir(tmp_path) == ["report.html"]


def test_a_page_that_cannot_be_put_in_place_leaves_the_old_one(
    run_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "report.html"
    target.write_text("old")

    def refuse(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(ReportError, match="No space left on device"):
        write_report(read_run(run_file), target)
    assert target.read_text() == "old"
    assert os.listdir(tmp_path) == ["report.html"]


def test_what_a_sampling_model_is_worth_stands_on_the_page_and_is_called_no_certificate(run_file: Path) -> None:
    determinism = {"model": "samples", "why": "temperature 1", "scope": "this_run", "promise": "no replacement <b>"}
    rows = []
    for row in read_run(run_file).rows:
        if row["defense"] == "keyword" and row["attack"]["name"] == "none" and row.get("error") is None:
            row = {**row, "answer": {**row["answer"], "radius": 2, "determinism": determinism}}
        rows.append(row)
    shown = report_page(Run("run", rows=tuple(rows)))
    assert "ecacc k&#39;=1" in shown
    assert "samples (temperature 1)" in shown
    assert "no certificate of any single answer" in shown
    assert "replacement <b>" not in shown


def page_of(rows: list[dict[str, Any]], **config: Any) -> str:
    return report_page(Run("run.jsonl", {"config": config}, tuple(rows)))


def test_the_page_has_the_papers_table_of_the_runs_layout(made_rows: list[dict[str, Any]]) -> None:
    shown = page_of(made_rows, layout="paper-table2")
    assert "Accuracy and attack success under attack" in shown
    assert "racc / asr" in shown
    assert "racc / asr" not in page_of(made_rows)
    for hostile in ("__class__", "<script>", 3, None, ["paper-table2"]):
        assert "racc / asr" not in page_of(made_rows, layout=hostile)


def test_the_page_has_paired_tests_and_warnings(made_rows: list[dict[str, Any]]) -> None:
    answered = [r for r in made_rows if r["error"] is None]
    rows = [{**r, "answer": {**r["answer"], "warnings": ["<b>beware of 3"]}} for r in answered]
    shown = page_of(rows)
    assert "Differences between setups on the same questions" in shown
    assert "p (Holm)" in shown
    assert f"warning of {len(rows)} of {len(rows)} answers: &lt;b&gt;beware of 3" in shown
    assert "exact for 0/n and n/n" in shown
