"""The house: which room may import which, no circles between modules, pure counting, and a bare import that stays bare.

Imports are read from the source, those inside functions and under `TYPE_CHECKING` included; nothing is imported here.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterable
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CORE = "robustrag_integrations"
PACKAGES = (CORE, "langchain_robustrag", "llamaindex_robustrag")

# From the ground up. A room (a folder or module of the core, or an integration) may import rooms of its own floor and
# of those below. A new room needs a place here.
FLOORS = (
    {"_util"},
    {"answers", "audit", "counting", "drawing", "grouping", "reader", "text"},
    {"corpus", "models"},
    {"plans", "replies"},
    {"certification", "core"},
    {"defenses"},
    {"evaluation"},
    {"cli", "playground", "serve", "langchain_robustrag", "llamaindex_robustrag"},
    {"__init__", "__main__"},  # the front door: it names everything, and no room below the command line imports it
)
# Stricter than their floors.
ONLY = {
    "core": {"counting", "replies", "text"},  # the true count, whole answers, prompts
    "counting": {"_util"},
    "drawing": {"_util"},  # pictures are drawn from dictionaries
    "text": {"_util"},
}
METHODS = ("consensus", "decoding", "keyword", "voting")


@cache
def sources() -> dict[str, Path]:
    """Every module of the three packages by its dotted name; a package by its folder's."""
    found = {}
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            parts = path.relative_to(ROOT).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


@cache
def imported(module: str) -> frozenset[str]:
    """The dotted names that a module imports anywhere in it: `a.b.c` for `from a.b import c`."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(sources()[module].read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module}:{node.lineno}: imports are absolute here"
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return frozenset(names)


@cache
def graph() -> dict[str, set[str]]:
    """Which of our modules each of our modules imports."""
    return {module: _ours(imported(module)) - {module} for module in sources()}


def _ours(names: Iterable[str]) -> set[str]:
    found = set()
    for name in names:
        while name and name not in sources():
            name = name.rpartition(".")[0]
        found.add(name)
    return found - {""}


def room(module: str) -> str:
    package, *inside = module.split(".")
    if package != CORE:
        return package
    return inside[0] if inside else "__init__"


def floor_of(name: str) -> int:
    found = [i for i, rooms in enumerate(FLOORS) if name in rooms]
    assert len(found) == 1, f"the room {name!r} stands on no floor: add it to FLOORS in {Path(__file__).name}"
    return found[0]


def test_no_modules_import_each_other() -> None:
    assert [*TopologicalSorter(graph()).static_order()]  # a circle is an error that names it


def test_no_room_imports_one_of_a_floor_above() -> None:
    climbs = [
        f"{module} imports {other}"
        for module, others in graph().items()
        for other in sorted(others)
        if room(other) != "__init__" and floor_of(room(other)) > floor_of(room(module))
    ]
    assert climbs == []


@pytest.mark.parametrize("strict", sorted(ONLY))
def test_a_strict_room_imports_no_more_than_it_says(strict: str) -> None:
    seen = {room(o) for m, others in graph().items() if room(m) == strict for o in others} - {strict}
    assert seen <= ONLY[strict]


def test_the_integrations_do_not_import_each_other_nor_the_command_line() -> None:
    for package, other in [PACKAGES[1:], PACKAGES[:0:-1]]:
        seen = {room(o) for m, others in graph().items() if room(m) == package for o in others}
        assert not seen & {other, "cli", "evaluation"}, package


@pytest.mark.parametrize("method", METHODS)
def test_a_method_knows_no_other_method(method: str) -> None:
    mine = f"{CORE}.defenses.{method}."
    others = tuple(f"{CORE}.defenses.{name}." for name in METHODS if name != method)
    seen = [f"{m} imports {o}" for m, found in graph().items() if m.startswith(mine) for o in found]
    assert seen
    assert [s for s in seen if s.split()[-1].startswith(others)] == []


def test_frameworks_are_imported_by_their_integration_alone() -> None:
    for module in sources():
        for framework, package in {"langchain": "langchain_robustrag", "llama_index": "llamaindex_robustrag"}.items():
            named = [n for n in imported(module) if n.startswith(framework) and not n.startswith(package)]
            named = [n for n in named if not n.startswith("langchain_text_splitters")]  # cuts the corpus's documents
            assert not named or room(module) == package, f"{module} imports {named}"


def counting() -> list[str]:
    defenses = ROOT / CORE / "defenses"
    names = ("threshold", "token_choice")
    found = [
        *(path for name in names for path in defenses.glob(f"*/{name}.py")),
        ROOT / CORE / "counting.py",
    ]
    return sorted(".".join(p.relative_to(ROOT).with_suffix("").parts) for p in found)


@pytest.mark.parametrize("method", METHODS)
def test_every_method_counts_in_a_module_that_does_nothing_else(method: str) -> None:
    mine = f"{CORE}.defenses.{method}."
    assert {other for m, found in graph().items() if m.startswith(mine) for other in found} & set(counting())


@pytest.mark.parametrize("module", counting())
def test_counting_is_pure(module: str) -> None:
    """Nothing but the standard library, numpy, checks of arguments and other counting: no I/O, no model."""
    io = {"asyncio", "http", "io", "logging", "os", "pathlib", "random", "socket", "subprocess", "threading", "time"}
    for name in imported(module):
        top = name.partition(".")[0]
        pure = (*counting(), f"{CORE}._util.checks")
        counted = any(name == other or name.startswith(f"{other}.") for other in pure)
        assert counted or top == "numpy" or (top in sys.stdlib_module_names and top not in io), name


def loaded_by(module: str) -> set[str]:
    """The top-level modules in a fresh interpreter after an import, without the standard library's."""
    # Start-up hooks of installed packages load some of their own before the first line runs.
    code = (
        f"import sys; before = set(sys.modules); import {module}\n"
        "print(*{m.partition('.')[0] for m in set(sys.modules) - before})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    return {m for m in done.stdout.split() if m not in sys.stdlib_module_names and m != "__mp_main__"}


def test_importing_the_core_or_its_command_line_loads_nothing_but_itself() -> None:
    assert loaded_by(f"{CORE}, {CORE}.cli") == {CORE}
