"""Runs and pages that several tests look at."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.evaluation.runs import decoding_row, failed_row, rows, voting_row, write_run


@pytest.fixture(scope="session")
def made_rows() -> list[dict[str, Any]]:
    """A small run of everything; not to be changed."""
    return [*rows(2, ranks=("first", "last"), sizes=(1, 2)), voting_row(), decoding_row(), failed_row()]


@pytest.fixture(scope="session")
def run_file(made_rows: list[dict[str, Any]], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of the small run."""
    return write_run(tmp_path_factory.mktemp("run") / "run.jsonl", made_rows)
