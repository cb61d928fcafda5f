"""`make check` leaves out what takes long and still goes through every room."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tests.conftest import slow_tests
from tests.package.test_floors import CORE, ROOT, sources

TESTS = ROOT / "tests"


@dataclass(frozen=True)
class File:
    """A test file: the names of its tests as pytest gives them, without parameters, and what it imports by name."""

    folder: Path
    names: tuple[str, ...]
    imports: frozenset[str]


@cache
def files() -> tuple[File, ...]:
    """All test files."""
    found = []
    for path in sorted(TESTS.rglob("test_*.py")):
        tree, name = ast.parse(path.read_text()), path.relative_to(ROOT).as_posix()
        tests = [n.name for n in tree.body if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))]
        named = [n for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)]
        found.append(
            File(
                path.parent,
                tuple(f"{name}::{n}" for n in tests if n.lower().startswith("test")),
                frozenset(f"{n.module}.{alias.name}" for n in named for alias in n.names),
            )
        )
    return tuple(found)


@cache
def quick_files() -> tuple[File, ...]:
    """The test files of which `make check` runs something."""
    slow = tuple(slow_tests())
    return tuple(file for file in files() if any(not name.startswith(slow) for name in file.names))


def rooms() -> list[str]:
    """Every package folder that holds code."""
    folders = {".".join(Path(p).relative_to(ROOT).parent.parts) for p in sources().values() if p.name != "__init__.py"}
    return sorted(folders)


def test_what_is_left_out_exists() -> None:
    known = [name for file in files() for name in file.names]
    for line in slow_tests():
        assert any(name.startswith(line) or line.startswith(f"{name}[") for name in known), f"no test is {line}"


def test_every_room_is_gone_through() -> None:
    assert [room for room in rooms() if not is_gone_through(room)] == []  # else take something out of slow.txt


def is_gone_through(room: str) -> bool:
    """By a test file in the folder that mirrors the room or of its name beside it, or by one that imports from it."""
    package, *inside = room.split(".")
    mirror = TESTS.joinpath(*([] if package == CORE else [package.removesuffix("_robustrag")]), *inside)
    beside = mirror.with_name(f"test_{mirror.name}.py").relative_to(ROOT).as_posix()
    for file in quick_files():
        if file.folder == mirror or any(name.startswith(f"{beside}::") for name in file.names):
            return True
        if any(name.startswith(f"{room}.") for name in file.imports):
            return True
    return False


def test_the_core_itself_is_a_room() -> None:
    assert {CORE, f"{CORE}.defenses.keyword", "langchain_robustrag", "llamaindex_robustrag"} <= set(rooms())


def test_the_makefile_names_tests_that_are_there() -> None:
    listed = (ROOT / "Makefile").read_text().split("CORE_TESTS := ")[1].split("test-lowest:")[0]
    named = re.findall(r"(?:\w+/)*test_\w+", listed)
    assert len(named) > 10
    assert [name for name in named if not (TESTS / f"{name}.py").exists()] == []
