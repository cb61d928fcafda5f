"""The table explains itself, fits narrow terminals, and does not carry out what data says."""

from __future__ import annotations

from typing import Any

import pytest

from robustrag_integrations.evaluation.score.summary import summarise
from robustrag_integrations.evaluation.show.tables import WIDTH, main_tables, remarks
from tests.evaluation.rows import PIA, certificate, failed, row


def told(rows: list[dict[str, Any]]) -> str:
    return "\n".join(remarks(summarise(rows)))


def main(rows: list[dict[str, Any]], width: int = WIDTH) -> list[str]:
    return [table.as_text(width) for table in main_tables(summarise(rows))]


def test_the_main_table_has_nine_columns_and_its_legend_explains_each() -> None:
    rows = [row(i, scores={"correct": float(i < 5)}, answer={"radius": i % 4}) for i in range(10)]
    rows += [row(i, attack=PIA, scores={"hijacked": i < 4}, answer={"radius": i % 2}) for i in range(10)]
    [text] = main(rows)
    title, _, first, second, _, clean, attacked, _, *legend = text.splitlines()
    assert (
        title == "Percent of 10 questions: demo (short answers), bundled, 10 passages each; 1 planted, at rank: first"
    )
    names = ["method", "attack", "right", "abstains", "attacker's", "attacker's", "right", "right", "right"]
    assert (first.split(), second.split()) == (names, ["r>=1", "r>=1", "r>=2", "r>=3"])
    assert clean.split() == ["keyword", "none", "50", "0", "-", "-", "30", "20", "10"]
    assert attacked.split() == ["keyword", "pia", "100", "0", "40", "20", "50", "0", "0"]
    said = "\n".join(legend)
    assert all(
        f"{name}: " in said for name in ("method", "attack", "right", "abstains", "attacker's", "attacker's r>=1")
    )
    assert "right r>=1, 2, 3: " in said
    assert "chance alone moves a share by up to 31 points" in said


@pytest.mark.parametrize("width", [80, 120])
def test_the_main_table_fits_with_many_attacks_and_long_names_and_cuts_none(width: int) -> None:
    long = ["keyword alpha=0.25 beta=3 extractor=spacy group_by=origin top_k=20", "consensus min_support=" + "3" * 20]
    attacks = [{**PIA, "name": name, "rank": rank, "corruption_size": size, "seed": 7, "repeat": 3}
               for name in ("keyword-flooding", "image-exfiltration", "mine:folder/of/payloads.json")
               for rank in ("first", "random") for size in (1, 12)]  # fmt: skip
    rows = [row(1, setup=setup, attack=attack) for setup in long for attack in ({"name": "none"}, *attacks)]
    [text] = main(rows, width)
    assert max(map(len, text.splitlines()[1:])) <= width
    table = text.split("\n\n")[1].splitlines()
    rule = next(line for line in table if line.startswith("--"))
    ends = rule.index(" "), rule.index(" ", rule.index(" ") + 2)
    names, planted = (
        "".join(line[a:b] for line in table).replace(" ", "") for a, b in ((0, ends[0]), (ends[0], ends[1]))
    )
    assert names.count(long[0].replace(" ", "")) == names.count(long[1].replace(" ", "")) == 13
    assert planted.count("mine:folder/of/payloads.json12plantedrandom") == 2


def test_each_data_set_has_a_table_and_what_was_certified_another_one() -> None:
    long = row(1, task="long_form", scores={"correct": 0.8, "judge": 80.0, "hijacked": None}, key="long")
    rows = [
        row(1, certificates=[certificate(1.0), certificate(0.0, 2, "modification")]),
        long,
        failed(2, dataset="x", key="x"),
    ]
    short, proved, graded, nothing = main(rows)
    assert proved.splitlines()[2] == "method   1 injected      2 modified"
    assert "100.0 [3, 100]" in proved
    assert graded.splitlines()[4].split() == ["keyword", "none", "80", "0"]
    assert "attacker's" not in short  # nobody attacked
    assert nothing.startswith("Percent of 0 questions: x")
    assert nothing.splitlines()[2].split() == ["method", "attack"]


def test_failures_and_undecided_certificates_are_told() -> None:
    text = told([row(1, certificates=[certificate(0.0, certified=False)]), failed(2)])
    assert "demo, keyword, none: 1 failed: ModelError: timed out" in text
    assert "1 of 1 certificates against injection k'=1 undecided, counted as 0" in text


def test_warnings_are_told_once_by_kind_with_an_example() -> None:
    said = [f"sources {i} and {i + 1} say the same as 'page {i}'" for i in range(5)]
    rows = [row(i, answer={"text": "Anna", "radius": 1, "warnings": [said[i], said[i]]}) for i in range(5)]
    rows += [row(i, setup="other", answer={"warnings": ["\x1b[31m=cut"]}) for i in range(2)]
    rows += [row(9, setup="third", certificates=[certificate(1.0, warnings=["a limit"])])]
    text = told(rows)
    assert text.splitlines()[-3:] == [
        "Warning of 5 of 8 answers, such as: sources 0 and 1 say the same as 'page 0'",
        "Warning of 2 of 8 answers, such as: ·[31m=cut",
        "Warning of 1 of 8 answers, such as: a limit",
    ]
