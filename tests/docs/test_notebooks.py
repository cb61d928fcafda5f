"""The notebooks that are made of examples run from top to bottom, and end with the answer, drawn."""

from __future__ import annotations

from pathlib import Path

import pytest

from docs.notebooks import EXAMPLES, notebook


@pytest.fixture(autouse=True)
def jupyter() -> None:
    for module in ("jupytext", "nbclient", "ipykernel"):
        pytest.importorskip(module)


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_notebook_runs_and_draws_its_answer(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from nbclient import NotebookClient

    monkeypatch.setenv("JUPYTER_PLATFORM_DIRS", "1")
    made = notebook(name)
    NotebookClient(made, timeout=120, resources={"metadata": {"path": str(tmp_path)}}).execute()
    shown = made.cells[-1].outputs[-1].data["text/html"]
    assert "radius" in shown.casefold()
    assert made.cells[0].cell_type == "markdown"
    assert not [o for cell in made.cells for o in cell.get("outputs", ()) if o.output_type == "error"]
