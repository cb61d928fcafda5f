"""Where a value goes inside a function: is it only written to or counted, handed to a robust engine, or read?"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable
from typing import Any, Literal, TypeAlias

from llamaindex_robustrag.wiring.code import Source
from llamaindex_robustrag.wiring.identity import is_a
from llamaindex_robustrag.wiring.responses import WHOLE, Responses, gives_no_text
from llamaindex_robustrag.wiring.sources import ENGINE_MAKERS, SHOWN, is_source, is_source_class, writes_only

# written: no text of it comes back; passed: to a function that is looked into by itself; isolated: a robust engine has
# it; read: anything else.
Destination: TypeAlias = Literal["written", "passed", "isolated", "read"]

_NO_TEXT = frozenset({"score", "node_id"})  # of a node
_REPACKS = (list, tuple, set, frozenset, sorted, dict, iter)


class Destinations:
    """Follows expressions of one function.

    Args:
        source: the function.
        value_of: what an expression is before the function runs, as far as that is known; None if it is not.
        takes: whether a call's argument is bound to a parameter of a function that is looked into by itself.
        robust: whether something is a class of this project that isolates what it is given, or makes such a thing.
        result: the `result` of the function's `Bound`.
    """

    def __init__(
        self,
        source: Source,
        value_of: Callable[[ast.AST], Any],
        takes: Callable[[ast.Call, ast.AST], bool],
        robust: Callable[[object], bool],
        result: frozenset[str] | None,
    ) -> None:
        self._source = source
        self._value_of = value_of
        self._takes = takes
        self._robust = robust
        self._result = result
        self._responses = Responses(source, value_of)
        self.shown: set[str] = set()  # what the expression last asked about has of `SHOWN`, or `WHOLE`, and is read
        self._followed: set[str] = set()
        self._writing: set[str] = set()

    def of(self, node: ast.AST, kind: type | None, attribute: str = "") -> Destination:
        """Where an expression goes.

        Args:
            node: the expression.
            kind: the class of the source that it starts from; None if only LlamaIndex knows.
            attribute: the last attribute that the expression reads.
        """
        self.shown.clear()
        self._followed.clear()
        self._writing.clear()
        return self._of(node, kind, attribute)

    def writing(self, node: ast.AST) -> frozenset[str] | None:
        """The methods that write to what an expression gives, where no text of it is read; None where it may be."""
        return frozenset(self._writing) if self.of(node, None) == "written" else None

    def _of(self, node: ast.AST, kind: type | None, attribute: str = "") -> Destination:
        while (parent := self._source.parents.get(node)) is not None:
            if self._responses.shows_all(node, parent):
                self.shown.add(WHOLE)
                return "read"
            if isinstance(parent, ast.Attribute):
                attribute = parent.attr
                if writes_only(kind, attribute):
                    self._writing.add(attribute)
                    return "written"
                if attribute in SHOWN:
                    goes = self._of(parent, kind, attribute)
                    self.shown |= {attribute} if goes == "read" else set()
                    return goes
            elif isinstance(parent, ast.Call) and parent.func is node:
                if attribute in ENGINE_MAKERS and self._is_robust_engine(parent):
                    return "isolated"
            elif isinstance(parent, (ast.keyword, ast.Starred, ast.Await, ast.BoolOp)):
                pass
            elif isinstance(parent, ast.Call):
                if (found := self._argument(parent, node)) is not None:
                    return found
            elif isinstance(parent, (ast.For, ast.AsyncFor)):
                return "written" if self._is_unread(parent.target) else "read"
            elif isinstance(parent, ast.comprehension):
                return "written" if self._counts(parent) else "read"
            elif isinstance(parent, ast.IfExp) and parent.test is not node:
                pass
            elif isinstance(parent, (ast.Expr, ast.Compare)) or _tests(parent, node):
                return "written"
            elif isinstance(parent, (ast.Assign, ast.AnnAssign, ast.NamedExpr, ast.withitem)):
                return self._variable(parent, node, kind)
            elif isinstance(parent, ast.Return) and not self._is_inner(parent):
                return self._returned(kind)
            else:
                return "read"
            node = parent
        return self._returned(kind) if isinstance(node, ast.expr) else "read"  # a lambda's body

    def _returned(self, kind: type | None) -> Destination:
        if self._result is None or not all(writes_only(kind, method) for method in self._result):
            return "read"
        self._writing |= self._result
        return "written"

    def _is_inner(self, node: ast.AST | None) -> bool:
        """Whether a statement is a function's that is written inside of this one."""
        while (node := self._source.parents.get(node) if node is not None else None) is not None:
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                return True
        return False

    def _argument(self, call: ast.Call, node: ast.AST) -> Destination | None:
        """Where an argument of a call goes; None if the call's result holds it."""
        called = self._value_of(call.func)
        if self._robust(called):
            return "isolated"
        if gives_no_text(called, call):
            return "written"
        if any(called is kind for kind in _REPACKS) or is_source_class(called):
            return None
        if isinstance(call.func, ast.Attribute):
            owner = self._value_of(call.func.value)
            if (is_source(owner) and writes_only(type(owner), call.func.attr)) or _makes(owner):
                return "written" if is_source(owner) else None
        return "passed" if self._takes(call, node) else "read"

    def _variable(self, assignment: Any, node: ast.AST, kind: type | None) -> Destination:
        """Where the variables go that a value is given to."""
        if isinstance(assignment, ast.withitem):
            targets = [assignment.optional_vars] if assignment.optional_vars is not None else []
        else:
            targets = assignment.targets if isinstance(assignment, ast.Assign) else [assignment.target]
        if getattr(assignment, "annotation", None) is node:
            return "written"
        found: list[Destination] = []
        for target in targets:
            if not isinstance(target, ast.Name):
                return "read"
            if target.id not in self._followed:
                self._followed.add(target.id)
                found += [self._of(load, kind) for load in self._source.loads(target.id)]
        if isinstance(assignment, ast.NamedExpr):
            found.append(self._of(assignment, kind))
        order: tuple[Destination, ...] = ("read", "isolated", "passed")
        return next((one for one in order if one in found), "written")

    def _is_robust_engine(self, call: ast.Call) -> bool:
        for keyword in call.keywords:
            if keyword.arg == "response_synthesizer":
                value = keyword.value
                made = self._value_of(value.func) if isinstance(value, ast.Call) else self._value_of(value)
                return self._robust(made) or self._robust(type(made))
        return False

    def _is_unread(self, target: ast.AST) -> bool:
        """Whether no text of a loop's variable is read, so that the loop counts, or lists scores."""
        return isinstance(target, ast.Name) and all(map(self._is_number, self._source.loads(target.id)))

    def _is_number(self, node: ast.AST) -> bool:
        """Whether nothing but an attribute without text is read of an expression."""
        parent = self._source.parents.get(node)
        while isinstance(parent, ast.Attribute) and parent.attr == "node":
            parent = self._source.parents.get(parent)
        return isinstance(parent, ast.Attribute) and parent.attr in _NO_TEXT

    def _counts(self, loop: ast.comprehension) -> bool:
        """Whether a comprehension gives a constant for each element, as in `sum(1 for _ in ids)`, or its number."""
        around = self._source.parents.get(loop)
        if not isinstance(around, (ast.GeneratorExp, ast.ListComp)):
            return False
        return isinstance(around.elt, ast.Constant) or self._is_unread(loop.target)


def _makes(owner: object) -> bool:
    """Whether it is a class of sources, whose methods make one."""
    return is_a(owner, type) and is_source_class(owner)


def _tests(parent: ast.AST, node: ast.AST) -> bool:
    if isinstance(parent, (ast.If, ast.While, ast.IfExp, ast.Assert)):
        return parent.test is node
    return isinstance(parent, ast.UnaryOp) and isinstance(parent.op, ast.Not)


BUILTINS = vars(builtins)
