"""The lists of tests that `make check` leaves out and `make test-lowest` runs name tests that are there."""

from __future__ import annotations

import ast
import re

from tests.conftest import slow_tests
from tests.package.test_floors import ROOT

TESTS = ROOT / "tests"


def test_what_is_left_out_exists() -> None:
    known = [
        f"{path.relative_to(ROOT).as_posix()}::{node.name}"
        for folder in (TESTS, ROOT / "benchmarks")
        for path in folder.rglob("test_*.py")
        for node in ast.parse(path.read_text()).body
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
    ]
    for line in slow_tests():
        assert any(name.startswith(line) or line.startswith(f"{name}[") for name in known), f"no test is {line}"


def test_the_makefile_names_tests_that_are_there() -> None:
    listed = (ROOT / "Makefile").read_text().split("CORE_TESTS := ")[1].split("test-lowest:")[0]
    named = re.findall(r"(?:\w+/)*test_\w+", listed)
    assert len(named) > 10
    assert [name for name in named if not (TESTS / f"{name}.py").exists()] == []
