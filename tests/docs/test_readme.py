"""The README's two commands stand in fenced blocks, from which they are copied."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_first_two_blocks_are_targets_of_the_makefile() -> None:
    readme, makefile = ((ROOT / name).read_text(encoding="utf-8") for name in ("README.md", "Makefile"))
    blocks = re.findall(r"^```(?:sh|bash)\n(.*?)^```$", readme, re.M | re.S)
    assert blocks[:2] == ["make demo\n", "make test\n"]
    assert all(re.search(rf"^{block.split()[1]}:", makefile, re.M) for block in blocks[:2])
    assert len(readme.splitlines()) < 120
