"""Writes the table of `robustrag_integrations.keywords.han` again, with OpenCC (pip install opencc).

python training/keywords/simplified.py robustrag_integrations/keywords/han.py
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import opencc

_LINE = 50  # characters


def table() -> dict[str, str]:
    """Each traditional character of the first plane, and the one that is written for it."""
    convert = opencc.OpenCC("t2s").convert
    found = {character: convert(character) for character in map(chr, range(0x3400, 0xA000))}
    return {old: new for old, new in found.items() if old != new and len(new) == 1 and ord(new) < 0xA000}


def main(file: Path) -> None:
    """Put both rows into the module."""
    pairs, text = table(), file.read_text(encoding="utf-8")
    for name, row in (("_TRADITIONAL", "".join(pairs)), ("_SIMPLIFIED", "".join(pairs.values()))):
        lines = "\n".join(f'    "{row[start : start + _LINE]}"' for start in range(0, len(row), _LINE))
        text = re.sub(rf"^{name} = \(\n.*?^\)", f"{name} = (\n{lines}\n)", text, flags=re.M | re.S)
    file.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
