"""The handbook in `examples/handbook`: its files and its questions fit together."""

from __future__ import annotations

import json
import runpy
from pathlib import Path
from typing import Any

from robustrag_integrations.certification.metrics import holds_answer

FOLDER = Path(__file__).parents[2] / "examples" / "handbook"
FILES = {
    path.relative_to(FOLDER / "documents").as_posix(): path.read_text(encoding="utf-8")
    for path in (FOLDER / "documents").rglob("*.*")
}
ROWS = [json.loads(line) for line in (FOLDER / "questions.jsonl").read_text(encoding="utf-8").splitlines()]
ANSWERABLE = [row for row in ROWS if row["kind"] != "unanswerable"]
MISSED = {"table-4", "amount-4"}


def evidence(row: dict[str, Any]) -> list[str]:
    return row.get("evidence") or row["answer"]


def test_the_passages_are_those_that_are_found_and_hold_the_answers() -> None:
    script = runpy.run_path(str(FOLDER / "retrieve.py"))
    bare = [{key: value for key, value in row.items() if key != "passages"} for row in ROWS]
    assert script["with_passages"](bare, str(FOLDER / "documents")) == ROWS, "run examples/handbook/retrieve.py"
    missed = {
        row["id"]
        for row in ANSWERABLE
        if not any(p["source"] in row["files"] and holds_answer(p["text"], evidence(row)) for p in row["passages"])
    }
    assert missed == MISSED
