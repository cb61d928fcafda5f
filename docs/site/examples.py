"""The page of examples: every program under `examples/`, with what it is for and what to install."""

from __future__ import annotations

import ast
from pathlib import Path

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def examples_page() -> str:
    """All examples on one page, in full."""
    parts = [
        "# Examples\n\nEach runs offline, with what its first lines say to install. The tests run them all; "
        "`make notebooks` writes two as notebooks.\n"
    ]
    for path in sorted(EXAMPLES.glob("*.py")):
        text = path.read_text(encoding="utf-8")
        first = (ast.get_docstring(ast.parse(text)) or path.stem).split("\n")[0].strip()
        parts.append(f"## `{path.name}`\n\n{first}\n\n```python\n{text.rstrip()}\n```\n")
    return "\n".join(parts)
