"""Every example runs as it stands."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "examples"
EXAMPLES = sorted(path for path in FOLDER.glob("*.py") if not path.stem.endswith("_library"))


NAV = (Path(__file__).parents[2] / "docs" / "site" / "zensical.toml").read_text(encoding="utf-8")
GUIDES = [
    *re.findall(r'"(guide/[a-z-]+\.md)"', NAV.partition('"Guides"')[2].partition("] },")[0]),
    *("guide/evaluation.md", "guide/production.md"),
]


@pytest.mark.parametrize("guide", GUIDES)
def test_every_guide_names_an_example_that_is_there(guide: str) -> None:
    text = (FOLDER.parent / "docs" / guide).read_text(encoding="utf-8")
    named = re.findall(r"examples/((?:redteam/)?[a-z_]+\.(?:py|yaml))", text)
    assert named, f"{guide} names no example"
    assert all((FOLDER / name).is_file() for name in named)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_the_example_runs_and_prints_something(example: Path) -> None:
    environment = {**os.environ, "HF_HUB_OFFLINE": "1"}
    done = subprocess.run(
        [sys.executable, str(example)], capture_output=True, text=True, timeout=240, env=environment, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.strip()
