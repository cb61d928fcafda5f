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
    assert [(one["dtype"], one["median"]) for one in isolation if "median" in one] == [
        ("torch.float32", 0.0),
        ("torch.bfloat16", 0.0),
    ]
    assert all("probed" in one["note"] for one in isolation if "median" in one)
    assert [one["differed"] for one in isolation if "differed" in one] == [0, 0]
    names = " ".join(one["name"] for one in cost)
    assert all(part in names for part in ("T=2: ours cold", "T=4: ours warm", "keyword", "transformers", "moved"))
    asked = {(one["task"], one["setup"], one["attack"]): one for one in answers}
    attacks = ("none", "pia", "poison")
    methods = [("qa", name) for name in ("vanilla", "keyword", "consensus", "decoding")]
    methods += [("mc", name) for name in ("vanilla", "voting")]
    assert {*asked} == {(*method, attack) for method in methods for attack in attacks}
    assert all((one["n"], one["failed"]) == (2, 0) for one in answers)
    assert all((one["seconds uncached"] > 0) for one in answers if one["attack"] == "none")
    assert asked["mc", "voting", "none"]["right"] == 1.0
    rows = [json.loads(line) for line in (tmp_path / "gpu.rows.jsonl").read_text().splitlines()]
    assert len(rows) == 2 * len(asked)
    assert '"setup": "voting"' in capsys.readouterr().out
