"""The lists of tests that `make check` leaves out and `make test-lowest` runs name tests that are there."""

from __future__ import annotations

import ast
import re

from tests.conftest import place, slow_tests
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


def test_a_seed_draws_an_order_and_keeps_files_whole() -> None:
    names = [f"tests/test_{file}.py::test_it[{number}]" for file in "abcd" for number in range(5)]
    one, another = (sorted(names, key=lambda name: place(name, seed)) for seed in ("1", "2"))
    assert one not in (names, another)
    files = [name.partition("::")[0] for name in one]
    assert len(dict.fromkeys(files)) == sum(a != b for a, b in zip(files, [None, *files], strict=False))
