"""Tables of cases that are data files: sections of JSON, a case a line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def listed(file: Path, *sections: str) -> list[list[Any]]:
    """The cases of each section of a file; a section ends at an empty line, and lines with # are comments."""
    text = file.read_text(encoding="utf-8")
    found = []
    for section in sections:
        lines = text.partition(f"[{section}]\n")[2].partition("\n\n")[0].splitlines()
        found.append([json.loads(line) for line in lines if not line.startswith("#")])
    return found
