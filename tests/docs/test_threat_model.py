"""The page on the threat model says what the package computes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.threat_model_tables import TABLES

PAGE = Path(__file__).resolve().parents[2] / "docs" / "guide" / "threat-model.md"


@pytest.mark.parametrize("name", TABLES)
def test_a_table_of_the_page_is_the_computed_one(name: str) -> None:
    shown = PAGE.read_text(encoding="utf-8").split(f"<!-- {name} -->\n")[1].split("\n\n")[0]
    assert shown == TABLES[name]()
