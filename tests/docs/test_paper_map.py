"""docs/paper-map.md names every numbered thing of the paper, and every function, test and file that it names exists."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "paper-map.md").read_text(encoding="utf-8")
SPANS = sorted(set(re.findall(r"`([^`\n]+)`", PAGE)))
TESTS = [s for s in SPANS if "::" in s]
CODE = [s for s in SPANS if re.fullmatch(r"[a-z_]+(\.[a-z_]+)*:[A-Za-z_]+(\.[a-z_]+)?", s)]
FILES = [s for s in SPANS if "/" in s and s not in TESTS and " " not in s]

# What the paper numbers, by its own count.
NUMBERED = [
    *(f"Algorithm {n}" for n in range(1, 6)),
    *(f"Theorem {n}" for n in (1, 2)),
    *(f"Lemma {n}" for n in (1, 2, 3)),
    *(f"Table {n}" for n in range(1, 7)),
    *(f"Figure {n}" for n in range(1, 22)),
    "Definition 1",
    "Equation 1",
]
SECTIONS = ["II-A", "II-B", "II-C", "II-D", "III-A", "III-B", "III-C", "IV-A", "IV-B", "IV-C", "IV-D"]
SECTIONS += ["V-A", "V-B", "V-C", "V-D", "A-A", "A-B", "A-C", "B", "C", "D"]


def rows() -> list[list[str]]:
    """The rows of all tables, cell by cell, without headings."""
    lines = [line for line in PAGE.splitlines() if line.startswith("| ") and not line.startswith("| in the paper")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def defined(body: list[ast.stmt], name: str) -> ast.stmt | None:
    """What a module or class defines under this name."""
    for node in body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)) and node.name == name:
            return node
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        if any(isinstance(target, ast.Name) and target.id == name for target in targets):
            return node
    return None


def exists(module: str, name: str) -> bool:
    """Whether a module (of the core, where no package is named) defines this function, class, constant or method."""
    folder = ROOT if module.split(".")[0] in ("training", "benchmarks") else ROOT / "robustrag_integrations"
    path = folder.joinpath(*module.split("."))
    path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    if not path.exists():
        return False
    outer, _, inner = name.partition(".")
    found = defined(tree(path).body, outer)
    return found is not None and (
        not inner or (isinstance(found, ast.ClassDef) and defined(found.body, inner) is not None)
    )


@pytest.mark.parametrize("span", CODE)
def test_every_function_that_is_named_exists(span: str) -> None:
    assert exists(*span.split(":"))


@pytest.mark.parametrize("span", TESTS)
def test_every_test_that_is_named_exists(span: str) -> None:
    path, _, name = span.partition("::")
    assert (ROOT / path).exists()
    assert defined(tree(ROOT / path).body, name) is not None


@pytest.mark.parametrize("span", FILES)
def test_every_file_that_is_named_exists(span: str) -> None:
    assert (ROOT / span).exists()


@pytest.mark.parametrize("item", [*NUMBERED, *SECTIONS])
def test_everything_that_the_paper_numbers_is_on_the_page(item: str) -> None:
    assert re.search(rf"^\| {re.escape(item)}\b", PAGE, re.MULTILINE), f"no row begins with {item}"


def test_every_row_names_code_and_a_test_or_says_why_not() -> None:
    assert len(rows()) >= len(NUMBERED) + len(SECTIONS)
    for row in rows():
        assert len(row) == 4, row
        _, _, code, tests = row
        implemented = any(f"`{span}`" in code for span in [*CODE, *FILES])
        assert (implemented and "::" in tests) or code.startswith("not here:"), row


def test_names_that_do_not_exist_are_found() -> None:
    assert not exists("passages", "isolated")
    assert not exists("passages.more", "isolate")
    assert not exists("passages", "Passage.shout")
    assert exists("passages", "isolate")
