"""The table shows every number with its interval, fits narrow terminals, and does not carry out what data says."""

from __future__ import annotations

import pytest

from robustrag_integrations.evaluation.score.summary import summarise
from robustrag_integrations.evaluation.show.tables import Table, summary_table
from tests.evaluation.rows import PIA, certificate, failed, row


def shown(rows: list[dict[str, object]], width: int | None = None) -> str:
    return summary_table(summarise(rows)).as_text(width)


def test_the_table_shows_rates_in_percent_with_their_intervals() -> None:
    rows = [row(i, scores={"correct": float(i < 5)}, certificates=[certificate(1.0)]) for i in range(10)]
    rows += [row(i, attack=PIA, scores={"hijacked": True, "both": True}) for i in range(10)]
    text = shown(rows)
    assert text.startswith("data: demo (qa), model: bundled, top k: 10\n")
    header = next(line for line in text.splitlines() if line.startswith("setup"))
    names = "setup attack n bacc racc asr both abstained cacc k'=1 right r>=1 wrong r>=1 radius"
    assert header.split() == [*names.split(), "calls", "tokens", "in", "out", "seconds"]
    clean, attacked = [line for line in text.splitlines() if line.startswith("keyword")]
    assert "50.0 [20, 80]" in clean
    assert "100.0 [69, 100]" in attacked
    assert "2.00 / 2.00 / -" in clean
    assert "radius: mean over right answers / wrong / abstentions" in text


def test_failures_and_undecided_certificates_are_shown_below() -> None:
    text = shown([row(1, certificates=[certificate(0.0, certified=False)]), failed(2)])
    assert "demo, keyword, none: 1 failed: ModelError: timed out" in text
    assert "1 of 1 certificates against injection k'=1 undecided, counted as 0" in text


def test_the_table_disarms_what_data_says() -> None:
    hostile = "\x1b[31mred\u202e\nnew line"
    text = shown([row(1, dataset=hostile, setup=hostile), failed(2, hostile, model=hostile)])
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "\nnew line" not in text


def test_warnings_stand_in_sum_below_the_table() -> None:
    said = [f"groups {i} and {i + 1} say the same as 'page {i}'" for i in range(5)]
    rows = [row(i, answer={"text": "Anna", "radius": 1, "warnings": [said[i], said[i]]}) for i in range(5)]
    rows += [row(i, setup="other", answer={"warnings": ["\x1b[31m=cut"]}) for i in range(2)]
    rows += [row(9, setup="third", certificates=[certificate(1.0, warnings=["a limit"])])]
    text = shown(rows)
    assert "warning of 5 of 8 answers: groups # and # say the same as #" in text
    assert "warning of 1 of 8 answers: a limit" in text
    assert "\x1b" not in text


def test_columns_that_do_not_fit_follow_below_their_rows_names() -> None:
    header = ("setup", "attack", "n", "right", "asr", "certified")
    rows = [
        ("vanilla", "none", "24", "100 [88, 100]", "0 [0, 12]", "-"),
        ("vanilla", "pia", "24", "0 [0, 12]", "100 [88, 100]", "-"),
        ("keyword", "none", "24", "96 [88, 100]", "0 [0, 12]", "96 [88, 100]"),
    ]
    text = Table("", header, rows, keys=2).as_text(32)
    assert max(map(len, text.splitlines())) <= 32
    *parts, certified = text.split("\n\n")
    assert [part.split()[2] for part in parts] == ["n", "right", "asr"]
    named = [["vanilla", "none"], ["vanilla", "pia"], ["keyword", "none"]]
    assert [line.split()[:2] for line in certified.splitlines()[2:]] == named


@pytest.mark.parametrize("width", [20, 60, 120])
def test_every_number_of_a_summary_stands_somewhere_at_any_width(width: int) -> None:
    rows = [row(i, scores={"correct": float(i < 5)}, certificates=[certificate(1.0)]) for i in range(10)]
    rows += [row(i, attack=PIA, scores={"hijacked": i < 3, "both": i < 2}) for i in range(10)]
    whole, narrow = shown(rows), shown(rows, width)
    numbers = {word for word in whole.split() if any(c.isdigit() for c in word)}
    assert numbers <= {word.removesuffix(";") for word in narrow.split()}
    if width >= 60:
        table, _, notes = narrow.partition("[low, high]")
        assert max(map(len, table.splitlines()[1:])) <= width or notes
