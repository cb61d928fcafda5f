"""What a page names, and whether it is there: code spans for functions, tests and files."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Page:
    """A Markdown page of the project."""

    text: str

    @classmethod
    def read(cls, name: str) -> Page:
        return cls((ROOT / name).read_text(encoding="utf-8"))

    @property
    def spans(self) -> list[str]:
        """Its code spans, each once."""
        prose = re.sub(r"^ *```.*?^ *```", "", self.text, flags=re.MULTILINE | re.DOTALL)
        return sorted(set(re.findall(r"`([^`\n]+)`", prose)))

    @property
    def tests(self) -> list[str]:
        """Spans like `tests/docs/test_examples.py::test_name`."""
        return [s for s in self.spans if "::" in s]

    @property
    def code(self) -> list[str]:
        """Spans like `grouping.passages:isolate`, module before the colon."""
        return [s for s in self.spans if re.fullmatch(r"[a-z_]+(\.[a-z_]+)*:[A-Za-z_]+(\.[a-z_]+)?", s)]

    @property
    def files(self) -> list[str]:
        """Spans like `docs/internals/paper-map.md`; those with a placeholder in capitals or with spaces are none."""
        return [s for s in self.spans if "/" in s and not re.search(r"::| |NAME", s)]

    def snippets(self, language: str) -> list[str]:
        """Its fenced blocks in a language."""
        return re.findall(rf"^```{language}\n(.*?)^```", self.text, flags=re.MULTILINE | re.DOTALL)


def exists(span: str) -> bool:
    """Whether a module of the core defines this function, class, constant or method."""
    module, _, name = span.partition(":")
    path = ROOT.joinpath("robustrag_integrations", *module.split("."))
    path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    if not path.exists():
        return False
    outer, _, inner = name.partition(".")
    found = _defined(_body(path), outer)
    if inner:
        return isinstance(found, ast.ClassDef) and _defined(found.body, inner) is not None
    return found is not None


def test_exists(span: str) -> bool:
    """Whether a test file has this test."""
    path, _, name = span.partition("::")
    return (ROOT / path).exists() and _defined(_body(ROOT / path), name) is not None


test_exists.__test__ = False  # type: ignore[attr-defined]


@cache
def _body(path: Path) -> list[ast.stmt]:
    return ast.parse(path.read_text(encoding="utf-8")).body


def _defined(body: list[ast.stmt], name: str) -> ast.stmt | None:
    for node in body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)) and node.name == name:
            return node
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        if any(isinstance(target, ast.Name) and target.id == name for target in targets):
            return node
    return None
