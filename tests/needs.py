"""What tests need beyond Python and are skipped without: the one place that says so; `robustrag doctor` asks it.

`python -m tests.needs` prints what would be skipped on this machine, and why, as JSON. What tests import with
`pytest.importorskip` is read from their source.
"""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
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


def interpreter(variable: str, folder: str) -> Path | None:
    """The Python of an environment that has a model server; None where there is none."""
    named = os.environ.get(variable)
    python = Path(named) if named else ROOT / folder / "bin" / "python"
    return python if python.exists() else None


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
    "MLX": Need(
        lambda: interpreter("ROBUSTRAG_TEST_MLX", ".venv-mlx") is not None,
        "mlx-lm is not installed: make .venv-mlx/.ready",
    ),
    "LLAMA": Need(
        lambda: interpreter("ROBUSTRAG_TEST_LLAMA", ".venv-llama") is not None,
        "llama-cpp-python is not installed: make test-llama",
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


# --- what would be skipped here, read from the source


@dataclass(frozen=True)
class Skip:
    """A place that may skip: `where` is a test, a file or a folder of tests; `needs` a module or a name of `NEEDS`."""

    where: str
    needs: str


def skips() -> list[Skip]:
    """Every place that skips tests where something is missing, with the tests that this is about."""
    found = set()
    for path in sorted(TESTS.rglob("*.py")):
        for function, needs in _calls(ast.parse(_text(path))):
            found |= {Skip(where, needs) for where in _concerned(path, function)}
    return sorted(found, key=lambda skip: (skip.needs, skip.where))


def _calls(tree: ast.Module) -> Iterator[tuple[str | None, str]]:
    """What calls `importorskip`, `or_skip` or `needing` (a function, or None for the module), with what it names."""
    for top in tree.body:
        function = top.name if isinstance(top, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)) else None
        for node in ast.walk(top):
            if isinstance(node, ast.Call) and node.args:
                called = ast.unparse(node.func).rpartition(".")[2]
                if called in ("importorskip", "or_skip", "needing"):
                    yield from ((function, name) for name in _named(node.args[0], top))


def _named(argument: ast.expr, within: ast.stmt) -> Iterator[str]:
    """A text, or the texts that a loop goes through."""
    if isinstance(argument, ast.Constant):
        yield str(argument.value)
    for loop in ast.walk(within):
        if isinstance(loop, ast.For) and ast.unparse(loop.target) == ast.unparse(argument):
            yield from (str(n.value) for n in ast.walk(loop.iter) if isinstance(n, ast.Constant))


def _concerned(path: Path, function: str | None) -> set[str]:
    """The tests that are skipped with a function of a file."""
    name = path.relative_to(ROOT).as_posix()
    if function is None:
        return {path.parent.relative_to(ROOT).as_posix() + "/" if path.name == "conftest.py" else name}
    if function.startswith("test"):
        return {f"{name}::{function}"}
    if path.name.startswith("test_"):
        return {name}
    return {other.relative_to(ROOT).as_posix() for other in _users(function) if other.name.startswith("test_")}


@cache
def _users(function: str) -> frozenset[Path]:
    """The files that use a helper or a fixture, also by way of another helper."""
    word = re.compile(rf"\b{re.escape(function)}\b")
    return frozenset(path for path in TESTS.rglob("*.py") if word.search(_text(path)))


@cache
def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def missing_here() -> list[dict[str, object]]:
    """What would be skipped on this machine: the reason, and the tests."""
    told: dict[str, list[str]] = {}
    for skip in skips():
        reason = _why_not(skip.needs)
        if reason:
            told.setdefault(reason, []).append(skip.where)
    return [{"why": why, "tests": sorted(set(tests))} for why, tests in sorted(told.items())]


@cache
def _why_not(needs: str) -> str | None:
    """Why something is not here; None if it is."""
    if needs in NEEDS:
        return None if NEEDS[needs].met() else NEEDS[needs].reason
    try:
        return None if find_spec(needs) is not None else f"{needs} is not installed"
    except (ImportError, ValueError):
        return f"{needs} is not installed"


if __name__ == "__main__":
    json.dump(missing_here(), sys.stdout, indent=1)
