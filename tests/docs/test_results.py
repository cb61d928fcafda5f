"""The tables of README and of the pages are those of the rows that are kept."""

from __future__ import annotations

import re
import runpy
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "examples" / "results" / "tables.py"


@pytest.fixture(scope="module")
def script() -> dict[str, Any]:
    return runpy.run_path(str(SCRIPT))


def test_every_page_holds_the_tables_of_the_kept_rows(script: dict[str, Any]) -> None:
    shown = set()
    for page in script["PAGES"]:
        text = (ROOT / page).read_text(encoding="utf-8")
        shown |= set(re.findall("<!-- rows: (.*?) -->", text))
        assert script["written"](text) == text, f"run {SCRIPT.relative_to(ROOT)}"
    assert shown == set(script["BLOCKS"])
