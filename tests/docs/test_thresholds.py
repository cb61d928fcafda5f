"""The tables of keyword aggregation's radii are what its settings give."""

from __future__ import annotations

import re

import pytest

from robustrag_integrations import CallableModel, KeywordAggregation, Passage
from tests.docs.pages import Page

PAGE = Page.read("docs/internals/thresholds.md").text


def rows(name: str) -> list[list[str]]:
    """The table below this mark, its heading first and its rule left out."""
    [table] = re.findall(rf"<!-- {name} -->\n((?:\|.*\n)+)", PAGE)
    lines = [[cell.strip() for cell in line.strip("| ").split("|")] for line in table.splitlines()]
    return [lines[0], *lines[2:]]


def radius(agree: int, total: int, setting: str) -> int:
    alpha, beta = setting.split(", ")
    said = [*["Tarsk"] * agree, *(f"Other{chr(65 + n)}" for n in range(total - agree))]
    model = CallableModel(lambda prompt: next(s for n, s in enumerate(said) if f"page {n}." in prompt), samples=False)
    method = KeywordAggregation(model, alpha=float(alpha), beta=int(beta), final="never")
    return method.answer("Where?", [Passage(f"page {n}.", source=f"{n}.example") for n in range(total)]).radius


@pytest.mark.parametrize("name", ["keyword-groups", "keyword-agreement"])
def test_the_table_is_what_the_settings_give(name: str) -> None:
    heading, *body = rows(name)
    for first, *radii in body:
        agree, _, total = first.partition(" of ")
        assert radii == [str(radius(int(agree), int(total or agree), s)) for s in heading[1:]], first
