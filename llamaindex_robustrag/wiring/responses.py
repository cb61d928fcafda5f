"""What a function reads of an engine's response: the answer and numbers about it, or what was outvoted as well."""

from __future__ import annotations

import ast
import dataclasses
import json
import pprint
from collections.abc import Callable
from typing import Any, Literal, TypeAlias

from llamaindex_robustrag.reports import REPORT, robust_answer, robust_answers
from llamaindex_robustrag.wiring.code import Source

# The metadata of a response, the report in it, and the `RobustAnswer` that a report is made from.
Part: TypeAlias = Literal["metadata", "report", "answer"]

WHOLE = "the whole response"
_SHOW_ALL = (repr, ascii, vars, pprint.pformat, json.dumps, dataclasses.asdict, dataclasses.astuple)
_CONTAINERS = (ast.List, ast.Tuple, ast.Set, ast.Dict)
_ALL_OF_IT = frozenset({"__dict__", "__repr__"})
_TEXTS = frozenset({"groups", "evidence", "alternatives", "citations", "explain", "to_dict", "kept"})
_NO_TEXT = (len, bool, isinstance, issubclass, type, id, hash, callable, hasattr, any, all, print)
_TESTS = (ast.Expr, ast.Compare, ast.If, ast.IfExp, ast.While, ast.Assert, ast.UnaryOp)


def gives_no_text(called: object, call: ast.Call) -> bool:
    """Whether a call gives back and passes on no text of what it is given; `print` may, to a `file` of one's own."""
    if called is print and any(keyword.arg in ("file", None) for keyword in call.keywords):
        return False
    return any(called is one for one in _NO_TEXT)


class Responses:
    """Follows what is read of a response in one function.

    Args:
        source: the function.
        value_of: what an expression is before the function runs, as far as that is known; None if it is not.
    """

    def __init__(self, source: Source, value_of: Callable[[ast.AST], Any]) -> None:
        self._source = source
        self._value_of = value_of

    def shows_all(self, node: ast.AST, parent: ast.AST) -> bool:
        """Whether what is around a response gives what was outvoted, too: `repr(response)`, `{"answer": response}`.

        Args:
            node: the expression that gives the response.
            parent: what is around it.
        """
        if isinstance(parent, ast.Attribute):
            return parent.attr in _ALL_OF_IT or (parent.attr == "metadata" and self._shows(parent, "metadata", set()))
        if isinstance(parent, ast.FormattedValue):
            return parent.conversion in (ord("r"), ord("a"))
        if isinstance(parent, _CONTAINERS):
            return not isinstance(node, (ast.Attribute, ast.Subscript)) and self._is_shown(parent, set())
        if not isinstance(parent, ast.Call) or parent.func is node:
            return False
        called = self._value_of(parent.func)
        if called is robust_answer or called is robust_answers:
            return self._shows(parent, "answer", set())
        return any(called is one for one in _SHOW_ALL)

    def _is_shown(self, container: ast.AST, followed: set[str]) -> bool:
        """Whether a list, tuple, set or dict is given back or made a text: what it holds is shown as its `repr`."""
        parent = self._source.parents.get(container)
        if isinstance(parent, (*_CONTAINERS, ast.Starred)):
            return self._is_shown(parent, followed)
        if isinstance(parent, (ast.Assign, ast.AnnAssign, ast.NamedExpr)):
            targets = parent.targets if isinstance(parent, ast.Assign) else [parent.target]
            names = {target.id for target in targets if isinstance(target, ast.Name)} - followed
            followed |= names
            return any(self._is_shown(load, followed) for name in names for load in self._source.loads(name))
        if isinstance(parent, ast.Call) and parent.func is not container:
            called = self._value_of(parent.func)
            return any(called is one for one in (str, format, *_SHOW_ALL))
        return parent is None or isinstance(parent, (ast.Return, ast.FormattedValue))

    def _shows(self, node: ast.AST, part: Part, followed: set[str]) -> bool:
        """Whether what is done with a part of a response may show passages."""
        parent = self._source.parents.get(node)
        if (read := self._read(parent, node)) is not None:
            around, key = read
            if part == "metadata":
                return key == REPORT and self._shows(around, "report", followed)
            return key in _TEXTS or (isinstance(key, int) and self._shows(around, part, followed))
        if isinstance(parent, (ast.Assign, ast.AnnAssign, ast.NamedExpr)) and parent.value is node:
            named = isinstance(parent, ast.NamedExpr) and self._shows(parent, part, followed)
            return named or self._variable(parent, part, followed)
        if isinstance(parent, ast.BoolOp) or (isinstance(parent, ast.IfExp) and parent.test is not node):
            return self._shows(parent, part, followed)
        if isinstance(parent, ast.Call):
            if isinstance(parent.func, ast.Attribute) and parent.func.attr == "from_dict":
                return self._shows(parent, "answer", followed)
            return not gives_no_text(self._value_of(parent.func), parent)
        return not isinstance(parent, _TESTS)

    def _variable(self, assignment: ast.Assign | ast.AnnAssign | ast.NamedExpr, part: Part, followed: set[str]) -> bool:
        targets = assignment.targets if isinstance(assignment, ast.Assign) else [assignment.target]
        names = [target.id for target in targets if isinstance(target, ast.Name)]
        loads = [load for name in names if name not in followed for load in self._source.loads(name)]
        followed.update(names)
        return len(names) < len(targets) or any(self._shows(load, part, followed) for load in loads)

    def _read(self, parent: ast.AST | None, node: ast.AST) -> tuple[ast.AST, object] | None:
        """The expression that reads one key, number or attribute of another, and which one."""
        if isinstance(parent, ast.Subscript) and parent.value is node and isinstance(parent.slice, ast.Constant):
            return parent, parent.slice.value
        if not isinstance(parent, ast.Attribute):
            return None
        call = self._source.parents.get(parent)
        if parent.attr not in ("get", "items", "values", "copy"):
            return parent, parent.attr
        if isinstance(call, ast.Call) and call.func is parent and call.args and isinstance(call.args[0], ast.Constant):
            return call, call.args[0].value
        return None
