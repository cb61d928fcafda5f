"""The table shows every number with its interval, and neither it nor the CSV carries out what data says."""

from __future__ import annotations

import csv
import io

import pytest

from robustrag_integrations.evaluation.score.summary import summarise
from robustrag_integrations.evaluation.show.lines import lines_csv, lines_table, plain_cell
from tests.evaluation.rows import PIA, certificate, failed, row


def read(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_the_table_shows_rates_in_percent_with_their_intervals() -> None:
    rows = [row(i, scores={"correct": float(i < 5)}, certificates=[certificate(1.0)]) for i in range(10)]
    rows += [row(i, attack=PIA, scores={"hijacked": True, "both": True}) for i in range(10)]
    shown = lines_table(summarise(rows))
    assert shown.startswith("data: demo (qa), model: bundled, top k: 10\n")
    header = next(line for line in shown.splitlines() if line.startswith("setup"))
    assert header.split() == [
        "setup",
        "attack",
        "n",
        "bacc",
        "racc",
        "asr",
        "both",
        "abstained",
        "cacc",
        "k'=1",
        "right",
        "r>=1",
        "wrong",
        "r>=1",
        "radius",
        "calls",
        "tokens",
        "in",
        "out",
        "seconds",
    ]
    clean, attacked = [line for line in shown.splitlines() if line.startswith("keyword")]
    assert "50.0 [20, 80]" in clean
    assert "100.0 [69, 100]" in attacked
    assert "2.00 / 2.00 / -" in clean
    assert "radius: mean over right answers / wrong / abstentions" in shown


def test_failures_and_undecided_certificates_are_shown_below() -> None:
    undecided = certificate(0.0, certified=False, estimate={"value": 0.5, "sample_size": 5, "seed": 0})
    shown = lines_table(summarise([row(1, certificates=[undecided]), failed(2)]))
    assert "demo, keyword, none: 1 failed: ModelError: timed out" in shown
    assert "1 of 1 certificates against injection k'=1 undecided, counted as 0" in shown
    assert "lowest sampled scores there: 0.5 on average, no guarantee" in shown


def test_long_answers_show_judges_scores() -> None:
    judged = {"correct": 0.5, "judge": 50.0}
    rows = [row(1, task="long", scores=judged, certificates=[certificate(30.0)])]
    shown = lines_table(summarise(rows))
    assert "bllmj" in shown
    assert "cllmj k'=1" in shown
    assert "cacc" not in shown
    assert "30.0 [" in shown


def test_no_lines_are_said_to_be_none() -> None:
    assert lines_table(()) == "There are no rows."
    assert read(lines_csv(())) == []
    assert lines_csv(()).startswith("dataset,task,model")


def test_the_table_disarms_what_data_says() -> None:
    hostile = "\x1b[31mred\u202e\nnew line"
    shown = lines_table(summarise([row(1, dataset=hostile, setup=hostile), failed(2, hostile, model=hostile)]))
    assert "\x1b" not in shown
    assert "\u202e" not in shown
    assert "\nnew line" not in shown


def test_csv_has_one_row_per_line_and_a_column_per_certified_attacker() -> None:
    rows = [row(i, certificates=[certificate(1.0), certificate(0.0, 2)]) for i in range(4)]
    rows += [row(i, setup="vanilla", defense="vanilla", timing={"seconds": 1.0}) for i in range(4)]
    first, second = read(lines_csv(summarise(rows)))
    assert (first["setup"], first["n"], first["failed"], first["accuracy"], first["accuracy n"]) == (
        "keyword",
        "4",
        "0",
        "1.0",
        "4",
    )
    assert float(first["accuracy low"]) == pytest.approx(0.398, abs=0.001)
    assert (first["judge"], first["judge n"]) == ("", "0")
    assert (first["certified injection 1 score"], first["certified injection 2 score"]) == ("1.0", "0.0")
    assert first["certified injection 2 undecided"] == "0"
    assert (first["latency_ratio"], first["model_calls"]) == ("2.0", "11.0")
    assert second["certified injection 1 score"] == ""


@pytest.mark.parametrize(
    "text",
    ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", " =1", "\n=HYPERLINK(1)", "\x00=1", "＝1", "\u200b=1", "\x1b=1"],
)
def test_no_cell_is_a_formula(text: str) -> None:
    assert plain_cell(text).startswith("'")
    for cells in read(lines_csv(summarise([row(1, dataset=text, setup=text, model=text), failed(2, setup=text)]))):
        for value in cells.values():
            assert not value.lstrip().startswith(("=", "+", "-", "@", "＝"))


def test_plain_cells_stay_as_they_are() -> None:
    for text in ("", "demo", "keyword alpha=0.5", "a-b", "'quoted'", 'say "x", y'):
        assert plain_cell(text) == text
    [cells] = read(lines_csv(summarise([row(1, setup='say "x", y')])))
    assert cells["setup"] == 'say "x", y'
    assert len(plain_cell("a" * 10_000)) == 500


def test_tokens_stand_in_table_and_csv_and_unknown_ones_nowhere() -> None:
    cost = {"model_calls": 5, "rounds": 2, "prompt_tokens": 1000, "completion_tokens": 50}
    told = {**cost, "cached_tokens": 400, "reasoning_tokens": 20}
    silent = {**cost, "prompt_tokens": None, "completion_tokens": None}
    rows = [row(1, cost=told), row(2, cost={**told, "prompt_tokens": 3000}), row(3, cost=silent)]
    shown = lines_table(summarise(rows))
    [line] = [line for line in shown.splitlines() if line.startswith("keyword")]
    assert line.split()[-7:-1] == ["5.0", "2.0", "2000", "400", "50", "20"]
    assert "tokens are means over the 2 of 3 answers whose calls all told them" in shown
    [cells] = read(lines_csv(summarise(rows)))
    assert (cells["prompt_tokens"], cells["cached_tokens"], cells["with_tokens"]) == ("2000.0", "400.0", "2")
    [cells] = read(lines_csv(summarise([row(3, cost=silent)])))
    assert (cells["prompt_tokens"], cells["with_tokens"]) == ("", "0")


def test_warnings_stand_in_sum_below_the_table_and_in_the_spreadsheet() -> None:
    said = [f"groups {i} and {i + 1} say the same as 'page {i}'" for i in range(5)]
    rows = [row(i, answer={"text": "Anna", "radius": 1, "warnings": [said[i], said[i]]}) for i in range(5)]
    rows += [row(i, setup="other", answer={"warnings": ["\x1b[31m=cut"]}) for i in range(2)]
    rows += [row(9, setup="third", certificates=[certificate(1.0, warnings=["a limit"])])]
    shown = lines_table(summarise(rows))
    assert "warning of 5 of 8 answers: groups 0 and 1 say the same as 'page 0'" in shown
    assert "warning of 1 of 8 answers: a limit" in shown
    assert "page 1" not in shown
    assert "\x1b" not in shown
    first, second, _ = read(lines_csv(summarise(rows)))
    assert (first["warnings"], second["warnings"]) == (f"{said[0]}:5", "·[31m=cut:2")


def test_many_kinds_of_warnings_are_cut_and_counted() -> None:
    rows = [row(i, answer={"warnings": [chr(97 + i) * 5]}) for i in range(20)]
    shown = lines_table(summarise(rows))
    assert shown.count("warning of 1 of 20 answers") == 8
    assert "and 12 more kinds of warnings" in shown
