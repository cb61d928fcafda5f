"""The shared part of both static wiring checks. They read how a program is put together, and call nothing of it.

Classes are known by identity. What is not known is either a finding or named as not looked into: functions are opaque
but for what they hold, since only the audit at run time sees what they do.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Collection, Iterator, Sequence
from types import CodeType, FunctionType, MethodType, ModuleType

from robustrag_integrations.audit.prompts import Finding
from robustrag_integrations.errors import UndefendedError

_LOG = logging.getLogger(__name__)
_DEEPEST = 4  # objects and helpers behind a function
_LIBRARIES = ("langchain", "langgraph", "llama_index", "llamaindex_robustrag", "workflows", "pydantic")


class Findings(list[Finding]):
    """The findings of a static check.

    Attributes:
        not_looked_into: functions, steps and objects of which it is not known what they do with retrieved text.
    """

    def __init__(self) -> None:
        super().__init__()
        self.not_looked_into: list[str] = []

    def report(self, kind: str, path: str, thing: object, problem: str, fix: str) -> None:
        """Add a finding, once per place and kind."""
        if not any((f.kind, f.path) == (kind, path) for f in self):
            self.append(Finding(kind, path, type(thing).__name__, problem, fix))

    def skip(self, path: str, thing: object) -> None:
        """Note a part that is not searched."""
        name = thing.__qualname__ if isinstance(thing, (FunctionType, MethodType)) else type(thing).__name__
        if (place := f"{path or 'here'} ({name})") not in self.not_looked_into:
            self.not_looked_into.append(place)

    def raise_any(self) -> None:
        """Raise if there are findings; otherwise warn of the parts that were not searched.

        Raises:
            UndefendedError: there are findings.
        """
        if self:
            raise UndefendedError(self)
        if self.not_looked_into:
            shown = ", ".join(self.not_looked_into[:10]) + (", ..." if len(self.not_looked_into) > 10 else "")
            _LOG.warning("assert_defended did not look into %s; audit_isolation() sees what reaches a prompt", shown)


def trusting(trusted: Collection[object]) -> Callable[[object], bool]:
    """Return a predicate for objects that are trusted, or whose class is.

    Raises:
        TypeError: not a collection, or a name in it.
    """
    if isinstance(trusted, (str, bytes)) or not isinstance(trusted, Collection):
        raise TypeError(f"trusted={trusted!r:.80} must be a list of objects or classes; wrap it: [...]")
    if any(isinstance(item, (str, bytes)) for item in trusted):
        raise TypeError(f"trusted={trusted!r:.80} must hold the objects or classes themselves: a name proves nothing")
    return lambda value: any(value is item or type(value) is item for item in trusted)


def parts_of(program: object, path: str = "") -> Iterator[tuple[str, object]]:
    """Yield the program, or the items of a list of programs, each with its place.

    Raises:
        TypeError: an empty list.
    """
    if not isinstance(program, (list, tuple)):
        yield path, program
        return
    if not program:
        raise TypeError("there is nothing to check in an empty list; pass what people use")
    for at, part in enumerate(program):
        yield from parts_of(part, f"{path}[{at}]")


def held_by(thing: object, depth: int = 0, seen: frozenset[int] = frozenset()) -> Iterator[tuple[str, object]]:
    """Yield everything that a function or object holds, each with its place.

    Of a function: closure, defaults, arguments of a partial, `self`, the globals that its code names, and what the
    program's own helpers among these hold. Of an object of the program's own: its attributes.
    """
    if depth > _DEEPEST or id(thing) in seen:
        return
    for at, value in directly_held(thing):
        if value is None or isinstance(value, (str, int, float, type)):
            continue
        if not isinstance(value, (FunctionType, MethodType, functools.partial)) or is_library(value):
            yield at, value
        if not is_library(value) and not is_library(type(value)):
            yield from ((at + more, inner) for more, inner in held_by(value, depth + 1, seen | {id(thing)}))


def directly_held(thing: object) -> Iterator[tuple[str, object]]:
    """Yield the objects that a function or object itself holds, each with its place."""
    if isinstance(thing, functools.partial):
        yield from ((".args", value) for value in (*thing.args, *thing.keywords.values()))
        yield "", thing.func
    elif isinstance(thing, MethodType):
        yield ".__self__", thing.__self__
        yield "", thing.__func__
        code = getattr(thing.__func__, "__code__", None)
        for name in sorted(_names(code)) if code is not None and not is_library(thing.__func__) else ():
            if isinstance(method := getattr(type(thing.__self__), name, None), FunctionType):
                yield "", method
    elif isinstance(thing, FunctionType):
        code = thing.__code__
        yield from zip((f".{n}" for n in code.co_freevars), map(_content, thing.__closure__ or ()), strict=False)
        for value in (*(thing.__defaults__ or ()), *(thing.__kwdefaults__ or {}).values()):
            yield ".__defaults__", value
        if not is_library(thing):
            found = thing.__globals__
            yield from ((f".{name}", found[name]) for name in sorted(_names(code)) if name in found)
    elif isinstance(thing, (list, tuple)):
        yield from ((f"[{at}]", value) for at, value in enumerate(thing))
    elif not isinstance(thing, ModuleType):
        yield from ((f".{name}", value) for name, value in getattr(thing, "__dict__", {}).items())


def constants_of(function: object) -> frozenset[object]:
    """Return the texts in a function's own code, keys that it reads or writes among them."""
    code = getattr(getattr(function, "__func__", function), "__code__", None)
    return frozenset(_constants(code)) if isinstance(code, CodeType) else frozenset()


def is_library(thing: object) -> bool:
    """True if a function or class is the framework's own."""
    while isinstance(thing, (MethodType, functools.partial)):
        thing = thing.__func__ if isinstance(thing, MethodType) else thing.func
    module = getattr(thing if isinstance(thing, (type, FunctionType)) else type(thing), "__module__", "")
    return str(module).partition(".")[0].startswith(_LIBRARIES)


def _content(cell: object) -> object:
    try:
        return cell.cell_contents  # type: ignore[attr-defined]
    except ValueError:  # not filled yet
        return None


def _names(code: CodeType) -> set[str]:
    return set(code.co_names).union(*(_names(c) for c in _inner(code)))


def _constants(code: CodeType) -> Iterator[str]:
    yield from (value for value in code.co_consts if isinstance(value, str))
    for inner in _inner(code):
        yield from _constants(inner)


def _inner(code: CodeType) -> Sequence[CodeType]:
    return [value for value in code.co_consts if isinstance(value, CodeType)]
