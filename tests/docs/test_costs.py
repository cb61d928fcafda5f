"""The table of docs/guide/costs.md is what `python -m benchmarks.costs` prints, and the page's snippets run."""

from __future__ import annotations

import re

import pytest

from tests.docs.pages import ROOT

pytest.importorskip("torch", reason="needs the extra local")
pytest.importorskip("bm25s", reason="needs the extra eval")

PAGE = (ROOT / "docs" / "guide" / "costs.md").read_text(encoding="utf-8")


def cells(text: str) -> dict[str, list[float]]:
    found = (line.strip("|").split("|") for line in text.splitlines() if re.match(r"\| \w+ \| [\d.,]+ \|", line))
    return {name.strip(): [float(number.replace(",", "")) for number in numbers] for name, *numbers in found}


def test_the_table_is_what_methods_ask_for() -> None:
    """With room for float noise, and for a word more or less in a prompt."""
    from benchmarks.costs import table

    measured, shown = cells(table()), cells(PAGE)
    assert measured.keys() == shown.keys()
    for name, numbers in measured.items():
        assert shown[name] == pytest.approx(numbers, rel=0.1), name


@pytest.mark.parametrize("snippet", re.findall(r"```python\n(.*?)```", PAGE, re.S), ids=["early", "tokens"])
def test_snippets_run(snippet: str) -> None:
    exec(compile(snippet, "docs/guide/costs.md", "exec"), {})
