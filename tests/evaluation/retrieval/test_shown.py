"""Lines, tables, figures and the page of a measurement, from rows written by hand."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest

from robustrag_integrations.drawing.elements import to_html
from robustrag_integrations.evaluation.retrieval.figures import retrieval_figures, save_retrieval_plots
from robustrag_integrations.evaluation.retrieval.page import retrieval_finding, retrieval_parts
from robustrag_integrations.evaluation.retrieval.rows import ROW_SCHEMA, clean_digest, misfit_in_row, read_retrieval
from robustrag_integrations.evaluation.retrieval.summary import summarise_retrieval
from robustrag_integrations.evaluation.retrieval.tables import retrieval_csv, retrieval_table

CLEAN = [{"text": f"text {i}", "source": f"{i}.txt"} for i in range(4)]


def row(number: int, owned: dict[int, int], *, attack: str = "pia", error: Any = None) -> dict[str, Any]:
    question = f"Who built mill {number}?"
    measured = [
        {
            "m": m,
            "planted_passages": m,
            "found": 4,
            "votes": [
                {"rule": "passage", "groups": 4, "owned": rho, "displaced": rho},
                {"rule": "origin", "groups": 3, "owned": 1, "displaced": rho},
            ],
            "passages": [{"id": f"p{i}", "planted": i < rho} for i in range(4)],
        }
        for m, rho in owned.items()
    ]
    return {
        "schema": ROW_SCHEMA,
        "key": f"{number}{attack}",
        "dataset": "mills",
        "task": "qa",
        "question_id": str(number),
        "question": question,
        "retriever": "bm25",
        "attack": attack,
        "top_k": 4,
        "per_source": None,
        "sites": 1,
        "corpus_size": 9,
        "clean": dict.fromkeys(
            ("passage", "origin"), clean_digest(question, ((p["text"], p["source"]) for p in CLEAN))
        ),
        "measured": measured if error is None else [],
        "error": error,
    }


def certificate(number: int, taus: dict[int, float], rule: str = "passage") -> dict[str, Any]:
    """A clean row of an evaluation, as far as it matters here."""
    return {
        "model": "m",
        "dataset": "elsewhere",
        "task": "qa",
        "question": f"Who built mill {number}?",
        "attack": {"name": "none"},
        "passages": CLEAN,
        "top_k": 4,
        "setup": "keyword" if rule == "passage" else f"keyword group_by={rule}",
        "settings": {"group_by": rule, "group_size": 1},
        "scores": {"correct": 1.0},
        "certificates": [
            {"attack": "injection", "corruption_size": k, "tau": tau, "certified": True} for k, tau in taus.items()
        ],
        "error": None,
    }


ROWS = [row(0, {0: 0, 1: 1, 5: 4}), row(1, {0: 0, 1: 2, 5: 3}), row(2, {}, error={"type": "X", "message": "no"})]


def test_the_rows_are_of_the_schema() -> None:
    assert [misfit_in_row(r) for r in ROWS] == [None] * 3
    assert misfit_in_row({**ROWS[0], "measured": [{"m": "one"}]}) is not None


@pytest.mark.parametrize(("owned", "groups"), [(5, 4), (-1, 4), (1, 10**9)])
def test_counts_that_cannot_be_are_not_read(owned: int, groups: int, tmp_path: Path) -> None:
    wrong = row(0, {1: 1})
    wrong["measured"][0]["votes"][0] = {"rule": "passage", "groups": groups, "owned": owned, "displaced": 0}
    path = tmp_path / "run.retrieval.jsonl"
    path.write_text("\n".join([json.dumps(wrong), "[NaN]", "{", json.dumps(ROWS[0]), '{"torn']))
    assert read_retrieval(path) == [ROWS[0]]


def test_means_quantiles_and_shares() -> None:
    lines = {(line.rule, line.m): line for line in summarise_retrieval(ROWS)}
    line = lines["passage", 5]
    assert (line.n, line.failed, line.rho.mean, line.middle, line.high, line.worst) == (2, 1, 3.5, 3.5, 4.0, 4)
    assert (line.groups, line.share.mean, line.half.mean) == (4.0, 0.875, 1.0)
    assert lines["passage", 0].rho.mean == 0
    assert lines["origin", 5].rho.mean == 1


def test_certified_accuracy_is_at_what_each_question_needs() -> None:
    proofs = [certificate(0, {1: 1.0, 2: 0.0}), certificate(1, {1: 1.0, 3: 1.0})]
    lines = {(line.rule, line.m): line for line in summarise_retrieval(ROWS, proofs)}
    assert lines["passage", 0].cacc["keyword"].mean == 1.0
    assert lines["passage", 1].cacc["keyword"].mean == 1.0  # the second question needs 2 and has a proof for 3
    assert lines["passage", 5].cacc["keyword"].mean == 0.5
    assert lines["passage", 5].beyond["keyword"] == 0.5  # nothing was certified at 4
    assert lines["origin", 5].cacc == {}  # a certificate of passages says nothing of votes by origin


def test_certificates_of_another_retrieval_or_of_nothing_do_not_count() -> None:
    other = {**certificate(0, {1: 1.0}), "passages": CLEAN[::-1]}
    undecided = certificate(0, {1: 1.0})
    undecided["certificates"][0]["certified"] = False
    assert all(line.cacc == {} for line in summarise_retrieval(ROWS, [other]))
    [line] = [a for a in summarise_retrieval(ROWS[:1], [undecided]) if (a.rule, a.m) == ("passage", 1)]
    assert line.cacc["keyword"].mean == 0.0
    for part in (spread := row(0, {1: 1}))["measured"]:
        part["votes"] = [{**vote, "displaced": None} for vote in part["votes"]]  # no certificate can cover it
    [line, _] = summarise_retrieval([spread], [certificate(0, {1: 1.0})])
    assert (line.cacc, line.displaced) == ({}, None)


def test_the_table_says_what_was_measured_and_that_it_is_no_bound() -> None:
    shown = retrieval_table(summarise_retrieval(ROWS, [certificate(0, {1: 1.0}, "origin")]))
    assert "data:       mills (qa)" in shown
    assert "3.50 [3.0, 4.0]" in shown
    assert "not a bound" in shown
    assert "among the retrieved" in shown
    assert "cacc keyword" in shown
    assert "mills, pia: 1 questions failed" in shown
    assert retrieval_table([]) == "There are no rows."
    assert max(map(len, retrieval_table(summarise_retrieval(ROWS), 80).splitlines()[:-2])) <= 80


def test_no_cell_of_the_spreadsheet_is_a_formula() -> None:
    hostile = [{**r, "dataset": "=HYPERLINK(1)", "attack": "+cmd"} for r in ROWS]
    lines = list(csv.DictReader(io.StringIO(retrieval_csv(summarise_retrieval(hostile)))))
    assert {line["dataset"] for line in lines} == {"'=HYPERLINK(1)"}
    assert {line["attack"] for line in lines} == {"'+cmd"}
    assert float(lines[-2]["rho"]) == 3.5


def test_figures_show_rho_and_what_stays_certified() -> None:
    lines = summarise_retrieval([*ROWS, row(0, {1: 1}, attack="poison")], [certificate(0, {1: 1.0, 4: 1.0})])
    owned, certified = retrieval_figures(lines)
    assert [panel.title for panel in owned.panels] == ["pia", "poison"]
    assert {series.label for series in owned.panels[0].series} == {"passage", "origin"}
    assert [p.x for p in owned.panels[0].series[0].points] == [0, 1, 5]
    assert certified.panels[0].title == "pia, one vote: passage"


def test_figures_are_written(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    written = save_retrieval_plots(summarise_retrieval(ROWS), tmp_path / "figures")
    assert {path.name for path in written} == {"amplification.png", "amplification.svg"}


def test_the_page_shows_hostile_names_as_text() -> None:
    hostile = [{**r, "retriever": "<script>alert(1)</script>", "attack": "<img src=x>"} for r in ROWS]
    lines = summarise_retrieval(hostile)
    shown = "".join(map(to_html, retrieval_parts(lines)))
    assert "<script" not in shown
    assert "<img" not in shown
    assert "an attacker owns 3.5 of 4.0 votes" in retrieval_finding(lines)
    assert retrieval_parts([]) == []
    assert retrieval_finding([]) == ""
