"""Tables for narrow terminals: no line is too long, and nothing is lost."""

from __future__ import annotations

import pytest

from robustrag_integrations.cli import output
from robustrag_integrations.evaluation.score.summary import summarise
from robustrag_integrations.evaluation.show.lines import lines_table
from robustrag_integrations.evaluation.show.tables import fitted_table
from tests.evaluation.rows import PIA, certificate, row

HEADER = ("setup", "attack", "n", "right", "asr", "certified")
ROWS = [
    ("vanilla", "none", "24", "100 [88, 100]", "0 [0, 12]", "-"),
    ("vanilla", "pia", "24", "0 [0, 12]", "100 [88, 100]", "-"),
    ("keyword", "none", "24", "96 [88, 100]", "0 [0, 12]", "96 [88, 100]"),
]


def words(text: str) -> list[str]:
    return text.split()


def test_columns_that_do_not_fit_follow_below_their_rows_names() -> None:
    shown = fitted_table(HEADER, ROWS, keys=2, width=32)
    assert max(map(len, shown.splitlines())) <= 32
    *parts, certified = shown.split("\n\n")
    assert [words(part)[2] for part in parts] == ["n", "right", "asr"]
    named = [["vanilla", "none"], ["vanilla", "pia"], ["keyword", "none"]]
    assert [line.split()[:2] for line in certified.splitlines()[2:]] == named


@pytest.mark.parametrize("width", [20, 40, 60, 80, 100, 120])
def test_every_number_of_a_summary_stands_somewhere_at_any_width(width: int) -> None:
    rows = [row(i, scores={"correct": float(i < 5)}, certificates=[certificate(1.0)]) for i in range(10)]
    rows += [row(i, attack=PIA, scores={"hijacked": i < 3, "both": i < 2}) for i in range(10)]
    lines = summarise(rows)
    whole, narrow = lines_table(lines), lines_table(lines, width)
    numbers = {word for word in words(whole) if any(c.isdigit() for c in word)}
    assert numbers <= {word.removesuffix(";") for word in words(narrow)}
    if width >= 60:
        assert max(map(len, narrow.splitlines())) <= width


def test_a_terminal_has_a_width_and_a_file_has_none_unless_somebody_says(monkeypatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    assert output.terminal_width() is None
    monkeypatch.setenv("COLUMNS", "72")
    assert output.terminal_width() == 72
