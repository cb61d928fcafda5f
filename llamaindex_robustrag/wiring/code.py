"""The source of a function as a syntax tree, checked against the code that really runs."""

from __future__ import annotations

import ast
import dis
import linecache
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from types import CodeType, FunctionType

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_GLOBAL_LOADS = frozenset({"LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS"})
_LARGEST = 4_000_000  # characters of a file that is parsed


@dataclass(frozen=True, eq=False)
class Source:
    """A function's statements.

    Attributes:
        body: what runs when the function is called.
        parents: node to the node around it, within the body.
    """

    body: tuple[ast.AST, ...]
    parents: dict[ast.AST, ast.AST]

    def nodes(self) -> Iterator[ast.AST]:
        """Every node of the body."""
        for statement in self.body:
            yield from ast.walk(statement)

    def loads(self, name: str) -> list[ast.Name]:
        """Where a name is read."""
        return [n for n in self.nodes() if isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Load)]


def source_of(function: FunctionType) -> Source | None:
    """The source of a function; None if there is none, or if it is not surely what runs."""
    code = function.__code__
    text = "".join(linecache.getlines(code.co_filename, function.__globals__))
    found = [n for n in _functions(text).get((code.co_firstlineno, code.co_name), ()) if _fits(n, code)]
    if len(found) != 1:
        return None
    body = tuple(found[0].body) if isinstance(found[0].body, list) else (found[0].body,)
    parents = {child: node for part in body for node in ast.walk(part) for child in ast.iter_child_nodes(node)}
    return Source(body, parents)


@lru_cache(maxsize=32)
def _functions(text: str) -> dict[tuple[int, str], list[ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda]]:
    found: dict[tuple[int, str], list[ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda]] = {}
    try:
        tree = ast.parse(text) if len(text) <= _LARGEST else ast.Module([], [])
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return {}
    for node in ast.walk(tree):
        if isinstance(node, _FUNCTIONS):
            decorators = getattr(node, "decorator_list", [])
            line = min([node.lineno, *(d.lineno for d in decorators)])
            found.setdefault((line, getattr(node, "name", "<lambda>")), []).append(node)
    return found


def _fits(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda, code: CodeType) -> bool:
    """Whether a function of the file has the parameters and names of the code, so that the file was not changed."""
    arguments = node.args
    listed = [a.arg for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]
    if listed != list(code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]):
        return False
    named = {part for n in ast.walk(node) for part in _names(n)}
    plain = {name for name in _all_names(code) if not name.startswith("__")}
    return plain <= named


def _names(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Name):
        yield node.id
    elif isinstance(node, ast.Attribute):
        yield node.attr
    elif isinstance(node, ast.alias):
        yield from (node.name, *node.name.split("."), node.asname or "")
    elif isinstance(node, ast.ImportFrom):
        yield from (node.module or "", *(node.module or "").split("."))
    elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        yield node.name
    elif isinstance(node, ast.keyword):
        yield node.arg or ""
    elif isinstance(node, ast.MatchClass):
        yield from node.kwd_attrs


def _all_names(code: CodeType) -> set[str]:
    inner = [c for c in code.co_consts if isinstance(c, CodeType)]
    return {*code.co_names, *(name for c in inner for name in _all_names(c))}


def names_of(function: FunctionType) -> set[str]:
    """Every global and attribute name in a function's code, inner functions included."""
    return _all_names(function.__code__)


def globals_of(code: CodeType) -> set[str]:
    """The names that a function's code, inner functions included, reads as globals."""
    found = {i.argval for i in dis.get_instructions(code) if i.opname in _GLOBAL_LOADS}
    return found.union(*(globals_of(c) for c in code.co_consts if isinstance(c, CodeType)))
