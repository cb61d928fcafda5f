"""What tests need beyond Python and are skipped without; `pytest -rs` lists what is skipped, and why."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
TESTS = ROOT / "tests"
DATA = ROOT.parent / "shared" / "data"  # what may not be shipped: the paper's questions, the treebank


def find_chromium() -> str | None:
    """The browser named by CHROMIUM (a path, or a name on the path), else one on the path; None where there is none."""
    named = os.environ.get("CHROMIUM")
    names = (named,) if named else ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
    return next(filter(None, map(shutil.which, names)), None)


@dataclass(frozen=True)
class Need:
    """Something that a machine has or has not.

    Attributes:
        met: whether it has it.
        reason: why tests are skipped without it, and how to get it.
    """

    met: Callable[[], bool]
    reason: str


NEEDS = {
    "CHROMIUM": Need(
        lambda: find_chromium() is not None,
        "no Chromium on this machine: apt-get install chromium, or name one in CHROMIUM",
    ),
    "PAPER_DATA": Need(
        lambda: (DATA / "robustrag-realtimeqa.json.gz").is_file(), f"the paper's data is not here ({DATA})"
    ),
    "TREEBANK": Need(lambda: (DATA / "ewt-test.conllu.gz").is_file(), f"UD English-EWT is not here ({DATA})"),
    "FORK": Need(lambda: hasattr(os, "fork"), "this system does not fork"),
    "POSIX": Need(lambda: os.name == "posix", "permissions and signals are those of POSIX"),
    "PROC": Need(lambda: Path("/proc/self/stat").exists(), "no /proc that lists the children of a process"),
    "MEMORY_LIMITS": Need(
        lambda: hasattr(os, "fork") and sys.platform != "darwin", "this system does not limit memory"
    ),
    "SERVING": Need(
        lambda: all(map(find_spec, ("fastapi", "uvicorn", "torch"))), "transformers[serving] is not installed"
    ),
    "INT8": Need(lambda: _quantises(), "this build of torch cannot quantise"),
}


def or_skip(name: str) -> None:
    """Skip the test that calls this unless the machine has what it needs."""
    import pytest

    if not NEEDS[name].met():
        pytest.skip(NEEDS[name].reason)


def needing(name: str) -> Any:
    """The mark for tests that are skipped unless the machine has what they need."""
    import pytest

    return pytest.mark.skipif(not NEEDS[name].met(), reason=NEEDS[name].reason)


def _quantises() -> bool:
    if find_spec("torch") is None:
        return False
    import torch

    return bool(set(torch.backends.quantized.supported_engines) - {"none"})
