"""Writes notebooks from examples into `build/notebooks`: `make notebooks`. A test executes them."""

from __future__ import annotations

import ast
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = ("core_any_function", "core_citations")  # their last line in a notebook is the answer, which draws itself


def notebook(name: str) -> Any:
    """An example as a notebook: its docstring as text, its parts as cells, and at the end the answer, drawn."""
    import jupytext
    from nbformat import v4

    path = ROOT / "examples" / f"{name}.py"
    made = jupytext.read(path)
    told = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or name
    made.cells[0] = v4.new_markdown_cell(told)
    made.cells.append(v4.new_code_cell("answer"))
    made.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    for number, cell in enumerate(made.cells):
        cell["id"] = f"cell-{number}"  # the same each time
    return made


def main() -> int:
    """Write all of them."""
    import nbformat

    folder = ROOT / "build" / "notebooks"
    folder.mkdir(parents=True, exist_ok=True)
    for name in EXAMPLES:
        nbformat.write(notebook(name), folder / f"{name}.ipynb")
        print(folder / f"{name}.ipynb")
    return 0


if __name__ == "__main__":
    sys.exit(main())
