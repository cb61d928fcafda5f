"""The tables of README and of the pages are those of the rows that are kept."""

from __future__ import annotations

import json
import re
import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from robustrag_integrations.evaluation.run.config import read_config
from robustrag_integrations.evaluation.run.runner import evaluate

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "examples" / "results" / "tables.py"


def last_name(prompt: str) -> str:
    """The model of a run: the last word of the text with a capital."""
    return re.findall(r"[A-Z]\w+", prompt.partition("Text:")[2].partition("Question:")[0])[-1]


@pytest.fixture(scope="module")
def script() -> dict[str, Any]:
    return runpy.run_path(str(SCRIPT))


def test_every_page_holds_the_tables_of_the_kept_rows(script: dict[str, Any]) -> None:
    shown = set()
    for page in script["PAGES"]:
        text = (ROOT / page).read_text(encoding="utf-8")
        shown |= set(re.findall("<!-- rows: (.*?) -->", text))
        assert script["written"](text) == text, f"run {SCRIPT.relative_to(ROOT)}"
    assert shown == set(script["BLOCKS"])


def test_a_changed_figure_is_noticed_and_kept_rows_stay_small(script: dict[str, Any]) -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    start = text.index("<!-- rows: headline -->")
    forged = text[:start] + re.sub(r"\b\d+ / \d+\b", "99 / 0", text[start:], count=1)
    assert forged != text
    assert script["written"](forged) == text
    assert sum(script[name].stat().st_size for name in ("ROWS", "REPLIES")) < 200_000


def test_a_run_is_kept_in_place_of_its_earlier_rows(script: dict[str, Any], tmp_path: Path) -> None:
    model = "python:tests.docs.test_results:last_name"
    config = {"models": [model], "methods": ["vanilla", script["OURS"]], "attacks": ["pia"], "limit": 3}
    run = tmp_path / "run.jsonl"
    rows = evaluate(read_config(config), output=str(run)).rows
    header, *lines = map(json.loads, run.read_text(encoding="utf-8").splitlines())
    for group in (group for line in lines for group in line["answer"]["groups"]):
        group["confidence"] = 0.75  # which a function does not tell
    run.write_text("".join(json.dumps(line) + "\n" for line in (header, *lines)), encoding="utf-8")
    names = runpy.run_path(str(SCRIPT))["keep"].__globals__
    names.update(ROWS=tmp_path / "rows.csv.gz", REPLIES=tmp_path / "replies.csv.gz")
    for _ in range(2):
        names["keep"]("demo", [str(run)])
    found = [(r.question, r.setup, r.planted, r.right, r.radius) for r in names["kept"]()]
    assert sorted(found) == sorted(
        (r["question_id"], r["setup"], r["attack"]["corruption_size"], r["scores"]["correct"], r["answer"]["radius"])
        for r in rows
    )
    replies = names["kept_replies"]()
    assert {r.confidence for r in replies} == {0.75}
    assert {r.question for r in replies} == {r["question_id"] for r in rows}


def test_the_area_under_the_curve_is_the_share_of_pairs_in_order(script: dict[str, Any]) -> None:
    right, wrong = np.array([0, 0, 1, 2]), np.array([1, 1, 1, 1])  # replies at each level, the least sure first
    pairs = [(a > b) + (a == b) / 2 for a in (2, 3, 3) for b in (0, 1, 2, 3)]
    assert script["areas"](right, wrong) == pytest.approx(sum(pairs) / len(pairs))
