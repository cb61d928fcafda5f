"""The paper map names every numbered thing of the paper, and every function, test and file that it names exists."""

from __future__ import annotations

import re

from tests.docs.pages import ROOT, Page, exists, test_exists

PAGE = Page.read("docs/internals/paper-map.md")

# What the paper numbers, by its own count.
NUMBERED = [
    *(f"Algorithm {n}" for n in range(1, 6)),
    *(f"Theorem {n}" for n in (1, 2)),
    *(f"Lemma {n}" for n in (1, 2, 3)),
    *(f"Table {n}" for n in range(1, 7)),
    *(f"Figure {n}" for n in range(1, 22)),
    "Definition 1",
    "Equation 1",
]
SECTIONS = ["II-A", "II-B", "II-C", "II-D", "III-A", "III-B", "III-C", "IV-A", "IV-B", "IV-C", "IV-D"]
SECTIONS += ["V-A", "V-B", "V-C", "V-D", "A-A", "A-B", "A-C", "B", "C", "D"]


def rows() -> list[list[str]]:
    """The rows of all tables, cell by cell, without headings."""
    lines = [line for line in PAGE.text.splitlines() if line.startswith("| ") and not line.startswith("| in the paper")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]


def test_every_function_test_and_file_that_is_named_exists() -> None:
    assert [span for span in PAGE.code if not exists(span)] == []
    assert [span for span in PAGE.tests if not test_exists(span)] == []
    assert [span for span in PAGE.files if not (ROOT / span).exists()] == []


def test_everything_that_the_paper_numbers_is_on_the_page() -> None:
    begins = {item: re.search(rf"^\| {re.escape(item)}\b", PAGE.text, re.MULTILINE) for item in NUMBERED + SECTIONS}
    assert [item for item, row in begins.items() if not row] == []


def test_every_row_names_code_and_a_test_or_says_why_not() -> None:
    assert len(rows()) >= len(NUMBERED) + len(SECTIONS)
    for row in rows():
        assert len(row) == 4, row
        _, _, code, tests = row
        implemented = any(f"`{span}`" in code for span in [*PAGE.code, *PAGE.files])
        assert (implemented and "::" in tests) or code.startswith("not here:"), row
