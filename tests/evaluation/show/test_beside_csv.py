"""Differences between setups and answers in passages, as spreadsheets read them."""

from __future__ import annotations

import csv
import io

from robustrag_integrations.evaluation.score.paired import compare
from robustrag_integrations.evaluation.score.presence import answer_presence
from robustrag_integrations.evaluation.show.beside_csv import comparisons_csv, presence_csv
from tests.evaluation.rows import PIA, row


def read(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_every_comparison_has_a_line_and_names_are_no_formulas() -> None:
    rows = [
        row(i, setup=setup, dataset="=cmd|x", attack=PIA) for i in range(3) for setup in ("vanilla", "@b", "keyword c")
    ]
    found = compare(rows)
    cells = read(comparisons_csv(found))
    assert len(cells) == len(found) == 3 * 2
    assert {c["dataset"] for c in cells} == {"'=cmd|x"}
    assert "'@b" in {c["setup"] for c in cells}
    assert {(c["attack"], c["rank"], c["difference n"]) for c in cells} == {(PIA["name"], str(PIA["rank"]), "3")}
    assert comparisons_csv(()) == ""


def test_bounds_of_several_attackers_have_columns_of_their_own() -> None:
    passages = [{"text": "the answer is Paris", "planted": False}, {"text": "nothing", "planted": False}]
    rows = [row(i, answers=["Paris"], passages=passages) for i in range(2)]
    [cells] = read(presence_csv(answer_presence(rows)))
    assert float(cells["of passages"]) == 0.5
    assert float(cells["of questions"]) == 1.0
    assert cells["of questions interval"] == "exact"
    assert any(name.startswith("cacc bound injection 1") for name in cells)
    assert presence_csv(()) == ""
