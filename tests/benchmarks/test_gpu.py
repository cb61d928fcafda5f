"""The benchmark for accelerators runs through on the CPU, keeps what it found, and says what failed."""

from __future__ import annotations

import json

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

from benchmarks import gpu


def test_the_dry_run_goes_through_every_section(tmp_path, capsys) -> None:
    output = tmp_path / "gpu.json"
    assert gpu.main(["--dry-run", "--output", str(output)]) == 0
    report = json.loads(output.read_text())
    assert [*report["sections"]] == ["isolation", "cost", "answers"]
    isolation, cost, answers = (section["found"] for section in report["sections"].values())
    assert [one["median"] for one in isolation if "median" in one] == [0.0, 0.0]
    assert any("keyword" in one["name"] for one in cost)
    assert all((one["n"], one["failed"]) == (2, 0) for one in answers)
    assert len((tmp_path / "gpu.rows.jsonl").read_text().splitlines()) == 2 * len(answers)
