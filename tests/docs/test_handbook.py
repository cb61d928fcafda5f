"""The handbook in `examples/handbook`: its files and its questions fit together."""

from __future__ import annotations

import json
import runpy
from pathlib import Path
from typing import Any

from robustrag_integrations import CallableModel
from robustrag_integrations.certification.metrics import holds_answer

FOLDER = Path(__file__).parents[2] / "examples" / "handbook"
FILES = {
    path.relative_to(FOLDER / "documents").as_posix(): path.read_text(encoding="utf-8")
    for path in (FOLDER / "documents").rglob("*.*")
}


def rows_of(file: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (FOLDER / file).read_text(encoding="utf-8").splitlines()]


ROWS = rows_of("questions.jsonl")
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


def test_an_upload_holds_what_the_handbook_does_not() -> None:
    handbook = "\n".join(FILES.values())
    for row in rows_of("uploads.jsonl"):
        for file in row["files"]:
            assert holds_answer((FOLDER / file).read_text(encoding="utf-8"), row["answer"]), row["id"]
        assert not holds_answer(handbook, [row["answer"][0]]), row["id"]


def test_the_points_of_a_long_answer_stand_in_its_files() -> None:
    rightness = runpy.run_path(str(FOLDER / "uploads.py"))["rightness"]
    for row in rows_of("long.jsonl"):
        assert rightness("\n".join(FILES[file] for file in row["files"]), row) == 1, row["id"]
        assert rightness(row["incorrect"], row) < 0.5, row["id"]


MANUAL = FOLDER.parent / "manual"


def test_the_manuals_answers_stand_in_its_pages() -> None:
    rows = [json.loads(line) for line in (MANUAL / "questions.jsonl").read_text(encoding="utf-8").splitlines()]
    assert len(rows) == 40
    for row in rows:
        assert row["files"] or row["kind"] == "nowhere", row["id"]
        assert ("before" in row) == ("alone" in row) == (row["kind"] == "follow-up"), row["id"]
        for file in row["files"]:
            assert holds_answer((MANUAL / file).read_text(encoding="utf-8"), evidence(row)), (row["id"], file)


def test_the_towns_pages_hold_its_answers() -> None:
    script = runpy.run_path(str(FOLDER.parent / "town" / "generate.py"))
    pages, asked = dict(script["pages"]()), list(script["questions"]())
    assert len(pages) == len(asked) == 15
    for row in asked:
        [file] = row["files"]
        assert holds_answer(pages[file.removeprefix("site/")], row["answer"]), row["id"]


def test_a_follow_up_is_asked_as_the_model_rewrites_it_and_as_it_is_written_out() -> None:
    alone = runpy.run_path(str(FOLDER / "uploads.py"))["alone"]
    row = {"id": "a", "kind": "follow-up", "question": "And that?", "before": ["One?", "Two."], "alone": "And three?"}
    prompts: list[str] = []
    made = list(alone([row], lambda prompt: prompts.append(prompt) or " What about\nthree? "))
    assert [r["question"] for r in made] == ["What about three?", "And three?"]
    assert all(text in prompts[0] for text in ("One?", "Two.", "And that?"))


def test_the_script_asks_about_planted_files() -> None:
    script = runpy.run_path(str(FOLDER / "uploads.py"))
    found = script["Shelves"](FOLDER / "documents", FOLDER / "uploads", 3).search(ROWS[0], 3)
    assert {p.origin.partition("/")[0] for p in found["handbook"]} == {"documents"}
    assert {p.origin for p in found["uploads"]} <= {f"uploads/planted-{n}.txt" for n in range(3)}
    model = CallableModel(lambda prompt: "I don't know" if "planted" not in prompt else ROWS[0]["incorrect"])
    answers = [script["asked"](ROWS[0], found, setup, model) for setup in script["SETUPS"]]
    assert all(script["score"](answer, ROWS[0])["right"] == 0 for answer in answers)
