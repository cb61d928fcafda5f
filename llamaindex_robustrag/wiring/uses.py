"""What a function uses: the objects that its code names, and what it does with them."""

from __future__ import annotations

import ast
import functools
import gc
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from importlib.machinery import PathFinder
from importlib.util import resolve_name
from types import FunctionType, ModuleType
from typing import Any, cast

from llamaindex_robustrag.wiring.bound import Bound, bound_of, member, parameters
from llamaindex_robustrag.wiring.code import Source, globals_of, names_of, source_of
from llamaindex_robustrag.wiring.destinations import BUILTINS, Destination, Destinations
from llamaindex_robustrag.wiring.identity import is_a, is_library_file, of_library
from llamaindex_robustrag.wiring.sources import READS, is_source, is_source_class

_MISSING = object()
_SEES_ALL = ("eval", "exec", "globals", "locals", "vars")
_ASKS = frozenset({"query", "aquery", "chat", "achat", "stream_chat", "astream_chat"})
_CACHED = type(functools.cache(lambda: None))
_SITES = ("site-packages", "dist-packages")


@dataclass(frozen=True)
class Use:
    """One thing that a function names.

    Attributes:
        name: how the code writes it.
        value: the object; a `Bound` where it is called with known arguments.
        rest: the attributes behind it that cannot be known before the function runs.
        goes: what becomes of it.
    """

    name: str
    value: object
    rest: tuple[str, ...] = ()
    goes: Destination = "read"


@dataclass(frozen=True)
class Unseen:
    """Something that only exists when the function runs, and from which it reads texts, or which reads them."""

    name: str
    why: str


def uses_of(
    bound: Bound, stops: Callable[[object], bool], robust: Callable[[object], bool], entry: bool
) -> Iterator[Use | Unseen]:
    """What a function uses.

    Args:
        bound: the function.
        stops: whether an object is judged as a whole, so that its attributes are not looked up.
        robust: whether something is a class of this project that isolates what it is given, or makes such a thing.
        entry: whether the arguments come from outside, as a workflow's events do.
    """
    source = source_of(bound.function)
    if source is None:
        yield from _without_source(bound)
    else:
        yield from _Reading(bound, source, stops, robust, entry).uses()


def _without_source(bound: Bound) -> Iterator[Use | Unseen]:
    """All that the code could mean by its names."""
    function, names = bound.function, names_of(bound.function)
    yield from (Use(name, value) for name, value in bound.given.items())
    yield from (Use(name, value) for name, value in cells(function))
    for name in sorted(function.__globals__ if names & set(_SEES_ALL) else names):
        value = function.__globals__.get(name, _MISSING)
        if is_a(value, ModuleType):
            yield from (Use(f"{name}.{n}", vars(value)[n]) for n in sorted(names) if n in vars(value))
        elif value is not _MISSING:
            yield Use(name, value)
    if reads := sorted(READS & names):
        yield Unseen(reads[0], "its source cannot be read, and its code names what reads documents")


def cells(function: FunctionType) -> Iterator[tuple[str, object]]:
    """The variables of a closure."""
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=False):
        for value in gc.get_referents(cell):  # none while the variable is not set
            yield name, value


class _Reading:
    """One function with its source."""

    def __init__(
        self,
        bound: Bound,
        source: Source,
        stops: Callable[[object], bool],
        robust: Callable[[object], bool],
        entry: bool,
    ) -> None:
        self._bound = bound
        self._source = source
        self._stops = stops
        self._entry = entry
        function = bound.function
        code = function.__code__
        known = {name: function.__globals__.get(name, BUILTINS.get(name, _MISSING)) for name in globals_of(code)}
        own = set(code.co_varnames[: code.co_argcount + code.co_kwonlyargcount])
        self._known = {**known, **dict(cells(function)), **bound.given}
        self._parameters = own - set(bound.given)
        self._unseen: list[Unseen] = []
        for node in source.nodes():
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                self._import(node)
        self._destinations = Destinations(source, self._value_of, self._takes, robust, bound.result)

    def uses(self) -> Iterator[Use | Unseen]:
        yield from self._unseen
        for node in self._source.nodes():
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                yield from self._use(node)

    def _use(self, name: ast.Name) -> Iterator[Use | Unseen]:
        value = self._known.get(name.id, _MISSING)
        value, held, node, rest = self._follow(value, name)
        shown = ast.unparse(node)[:80]
        if value is _MISSING or value is None:
            yield from self._unknown(name, node, rest, shown)
            return
        if any(value is BUILTINS[one] for one in _SEES_ALL):
            values = {**self._bound.function.__globals__, **dict(cells(self._bound.function))}
            yield from (Use(f"{shown}()[{one!r}]", held) for one, held in values.items() if not one.startswith("__"))
        elif is_source(value) or is_source_class(value):
            kind = type(value) if is_source(value) else None
            first = self._first_attribute(name, node)
            yield Use(shown, value, rest, self._destinations.of(first, kind))
        else:
            result = self._destinations.writing(held)
            if type(value) is _CACHED and result is not None:
                value = value.__wrapped__
            function = bound_of(value)
            if function is not None and (not rest or is_a(value, Bound)):
                call = self._source.parents.get(held)
                called = isinstance(call, ast.Call) and call.func is held
                made = self._called(function, cast(ast.Call, call)) if called else function
                value = replace(made, result=result)
            goes = self._goes(node, rest)
            yield Use(shown, value, (*rest, *sorted(self._destinations.shown)), goes)

    def _goes(self, node: ast.AST, rest: tuple[str, ...]) -> Destination:
        return self._destinations.of(node, None, rest[-1] if rest else "")

    def _unknown(self, name: ast.Name, node: ast.AST, rest: tuple[str, ...], shown: str) -> Iterator[Unseen]:
        attributes = {*rest, *self._later(node)}
        asks = self._entry and attributes & _ASKS and self._from_outside(name.id, set())
        if (attributes & READS or asks) and self._goes(node, rest) == "read":
            yield Unseen(shown, "it reads from something that is only there when it runs")

    def _later(self, node: ast.AST) -> Iterator[str]:
        """The attributes that are read of what a chain gives when it is called."""
        while (parent := self._source.parents.get(node)) is not None:
            if isinstance(parent, ast.Attribute):
                yield parent.attr
            elif not isinstance(parent, (ast.Call, ast.Await, ast.Subscript)) or _first_of(parent) is not node:
                return
            node = parent

    def _from_outside(self, name: str, asked: set[str]) -> bool:
        """Whether a variable comes from the function's arguments."""
        if name in self._parameters:
            return True
        asked.add(name)
        given = [n.value for n in self._source.nodes() if isinstance(n, ast.Assign) and _assigns(n, name)]
        roots = [_root_of(value) for value in given]
        return any(root is not None and root not in asked and self._from_outside(root, asked) for root in roots)

    def _first_attribute(self, name: ast.Name, node: ast.AST) -> ast.AST:
        """The expression that stands for the source itself, from which its use is followed."""
        found: ast.AST = name
        value = self._known.get(name.id, _MISSING)
        while found is not node and not self._stops(value):
            attribute = self._source.parents[found]
            value = _taken(value, attribute)
            found = attribute
        return found

    def _follow(self, value: Any, node: ast.AST) -> tuple[Any, ast.AST, ast.AST, tuple[str, ...]]:
        """The last object that is known of a chain of attributes, its expression, the chain, and the rest of it."""
        rest: list[str] = []
        held = node
        while (parent := self._source.parents.get(node)) is not None and _is_attribute(parent, node):
            found = None
            if not rest and value is not _MISSING and value is not None and not self._stops(value):
                found = _taken(value, parent)
            if found is None and isinstance(parent, ast.Subscript):
                break
            if found is None:
                rest.append(_attribute_of(parent))
            else:
                value, held = found, parent
            node = parent
        return value, held, node, tuple(rest)

    def _value_of(self, node: ast.AST) -> Any:
        """What an expression is, if that is known."""
        start = node
        while not isinstance(start, ast.Name):
            if isinstance(start, (ast.Attribute, ast.Subscript)):
                start = start.value
            elif isinstance(start, ast.Call) and _is_attribute(start, start.args[0] if start.args else None):
                start = start.args[0]
            else:
                return None
        value = self._known.get(start.id, _MISSING)
        while start is not node and value is not None and value is not _MISSING:
            start = self._source.parents[start]
            value = _taken(value, start)
        return None if value is _MISSING else value

    def _called(self, function: Bound, call: ast.Call) -> Bound:
        """The function with those arguments of a call that are known."""
        values = {name: self._value_of(node) for name, node in _arguments(function, call).items()}
        return Bound(function.function, {**function.given, **{n: v for n, v in values.items() if v is not None}})

    def _takes(self, call: ast.Call, node: ast.AST) -> bool:
        function = bound_of(self._value_of(call.func))
        if function is None or of_library(function.function.__code__):
            return False
        value = node.value if isinstance(node, ast.keyword) else node
        taken = _arguments(function, call).values()
        return any(value is one for one in taken) and self._value_of(value) is not None

    def _import(self, node: ast.Import | ast.ImportFrom) -> None:
        if isinstance(node, ast.Import):
            for alias in node.names:
                self._bind(alias.asname or alias.name.split(".")[0], alias.name, alias.asname is not None)
            return
        package = self._bound.function.__globals__.get("__package__")
        try:
            name = resolve_name("." * node.level + (node.module or ""), package if isinstance(package, str) else None)
        except (ImportError, ValueError):
            name = node.module or ""
        module = sys.modules.get(name)
        for alias in node.names:
            whole = sys.modules.get(f"{name}.{alias.name}")
            held = getattr(module, "__dict__", {}).get(alias.name, whole)
            if held is None:
                self._not_loaded(name)
            self._known[alias.asname or alias.name] = held

    def _bind(self, name: str, module: str, whole: bool) -> None:
        held = sys.modules.get(module if whole else module.split(".")[0])
        if held is None:
            self._not_loaded(module)
        self._known[name] = held

    def _not_loaded(self, module: str) -> None:
        """An import that has not happened: an installed package is passed over, except LlamaIndex's own."""
        top = module.split(".")[0]
        if top in sys.stdlib_module_names:
            return
        spec = PathFinder.find_spec(top)
        places = [spec.origin or "", *(spec.submodule_search_locations or ())] if spec is not None else []
        installed = any(site in place for place in places for site in _SITES)
        if top != "llama_index" and (not places or installed or any(is_library_file(p) for p in places)):
            return
        self._unseen.append(Unseen(f"import {module}", "it imports what is not loaded yet; import it at the top"))


def _is_attribute(parent: ast.AST, node: ast.AST | None) -> bool:
    """Whether a node reads an attribute of another: `x.name`, `x["name"]`, or `getattr(x, "name")`."""
    if isinstance(parent, ast.Subscript):
        return parent.value is node and isinstance(parent.slice, ast.Constant) and isinstance(parent.ctx, ast.Load)
    if isinstance(parent, ast.Attribute):
        return isinstance(parent.ctx, ast.Load)
    return (
        isinstance(parent, ast.Call)
        and isinstance(parent.func, ast.Name)
        and parent.func.id == "getattr"
        and len(parent.args) >= 2
        and parent.args[0] is node
        and isinstance(parent.args[1], ast.Constant)
        and isinstance(parent.args[1].value, str)
    )


def _first_of(node: ast.AST) -> ast.AST:
    """What a call calls, and what is awaited or looked up in."""
    return node.func if isinstance(node, ast.Call) else cast(Any, node).value


def _root_of(node: ast.AST) -> str | None:
    """The variable that an expression starts from."""
    while isinstance(node, (ast.Attribute, ast.Call, ast.Await, ast.Subscript)):
        node = _first_of(node)
    return node.id if isinstance(node, ast.Name) else None


def _assigns(node: ast.Assign, name: str) -> bool:
    return any(isinstance(target, ast.Name) and target.id == name for target in node.targets)


def _taken(value: object, node: ast.AST) -> object | None:
    """What an attribute or item of an object is; None if it cannot be known without running code."""
    if isinstance(node, ast.Subscript):
        key = node.slice.value if isinstance(node.slice, ast.Constant) else _MISSING
        return value.get(key) if type(value) is dict and type(key) in (str, int) else None
    return member(value, _attribute_of(node))


def _attribute_of(node: ast.AST) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return str(cast(ast.Constant, cast(ast.Call, node).args[1]).value)


def _arguments(function: Bound, call: ast.Call) -> dict[str, ast.AST]:
    """The expressions of a call by the name of the parameter; none if some are unpacked."""
    if any(isinstance(a, ast.Starred) for a in call.args) or any(k.arg is None for k in call.keywords):
        return {}
    code = function.function.__code__
    named = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    positional = parameters(function.function)
    if positional and positional[0] in function.given and positional[0] in ("self", "cls"):
        positional = positional[1:]
    found: dict[str, ast.AST] = dict(zip(positional, call.args, strict=False))
    return found | {k.arg: k.value for k in call.keywords if k.arg in named}
