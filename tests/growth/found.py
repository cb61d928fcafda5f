"""Every public function, method and property of the packages, and calls of it that hold hostile text."""

from __future__ import annotations

import asyncio
import dataclasses
import importlib
import inspect
import pkgutil
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache, cached_property
from types import ModuleType
from typing import Any

from tests.growth import known
from tests.growth.made import LeftOut, Matter, Unknown, parameters, reads_text, small, value

PACKAGES = ("robustrag_integrations", "langchain_robustrag", "llamaindex_robustrag")
_OWN = ("__init__", "__post_init__", "__call__")


@dataclass(frozen=True)
class Function:
    """Something public that can be called. `owner` is the class of a method or property."""

    name: str
    function: Any
    owner: Any = None
    is_static: bool = False

    @cached_property
    def read(self) -> dict[str, Any]:
        """The types of the parameters that may hold text; ("self", a class) of the object itself."""
        found = {name: kind for name, (kind, needed) in self._parameters.items() if _may_hold(kind, needed)}
        if self.owner is not None and not self.is_static:
            own = {name for name, (kind, needed) in parameters(self.owner).items() if _may_hold(kind, needed)}
            found |= {"self": self.owner} if own else {}
        return found

    @cached_property
    def _parameters(self) -> dict[str, tuple[Any, bool]]:
        return {} if isinstance(self.function, (property, cached_property)) else dict(parameters(self.function))

    def call(self, read: str, matter: Matter) -> Callable[[], Any]:
        """Return a call, ready to be made, in which this parameter is made of the text."""
        if self.name in known.CALLS:
            return known.CALLS[self.name](matter)
        given = self._arguments(self._parameters, read, matter)
        if self.owner is None or self.is_static:
            return lambda: _done(_called(self.function, given))
        itself = self.made_owner(matter if read in ("", "self") else small())
        if isinstance(self.function, (property, cached_property)):
            return lambda: _done(getattr(itself, self.name.rpartition(".")[2]))
        return lambda: _done(_called(self.function, given, itself))

    def made_owner(self, matter: Matter) -> Any:
        """An object of the class."""
        if self.owner.__name__ in known.MADE:
            return known.MADE[self.owner.__name__](matter)
        if dataclasses.is_dataclass(self.owner):
            return value(self.owner, matter)
        return self.owner(**self._arguments(parameters(self.owner), "", matter))

    @staticmethod
    def _arguments(taken: Any, read: str, matter: Matter) -> dict[str, Any]:
        given = {}
        for name, (kind, needed) in taken.items():
            holds = _may_hold(kind, needed)
            if needed or (holds and read in ("", name)):
                given[name] = value(kind, matter if holds and read in ("", name) else small())
        return given

    def shapes(self) -> Iterator[tuple[str, bool]]:
        """Yield what is grown in turn: a parameter, and whether it is one long text or many short ones."""
        for read in self.read if self.name not in known.CALLS else ["all"]:
            yield read, False
            yield read, True


def _may_hold(kind: Any, needed: bool) -> bool:
    try:
        return reads_text(kind)
    except (LeftOut, Unknown):
        if needed:
            raise
        return False


def _called(function: Any, given: dict[str, Any], *first: Any) -> Any:
    taken = inspect.signature(function).parameters
    alone = [given[name] for name in given if taken[name].kind is inspect.Parameter.POSITIONAL_ONLY]
    several = [one for name in given if taken[name].kind is inspect.Parameter.VAR_POSITIONAL for one in given[name]]
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.VAR_POSITIONAL)
    return function(*first, *alone, *several, **{n: v for n, v in given.items() if taken[n].kind not in kinds})


def _done(result: Any) -> Any:
    """Run what the result stands for to its end."""
    if inspect.iscoroutine(result):
        return asyncio.run(result)
    if isinstance(result, Iterator):
        deque(result, 0)
    return result


def functions_of(module: ModuleType) -> Iterator[Function]:
    """Yield what is public in a module and defined there."""
    for name, thing in list(vars(module).items()):
        if name[:1] == "_" or "[" in name or getattr(thing, "__module__", None) != module.__name__:
            continue
        where = f"{module.__name__}.{name}"
        if inspect.isfunction(thing):
            yield Function(where, thing)
        elif inspect.isclass(thing):
            yield from _methods(where, thing)


def _unmade(nobody_said_how: object) -> None:
    raise TypeError("known.MADE has no way to make one")


def _methods(where: str, owner: Any) -> Iterator[Function]:
    if inspect.isabstract(owner) or getattr(owner, "_is_protocol", False) or issubclass(owner, BaseException):
        return  # what is derived from it is checked
    if not dataclasses.is_dataclass(owner) and owner.__name__ not in known.MADE:
        yield Function(where, _unmade)
        return
    if "__init__" in vars(owner) or "__post_init__" in vars(owner):
        yield Function(where, owner)
    for name, thing in list(vars(owner).items()):
        if name.startswith("_") and name != "__call__":
            continue
        is_static = isinstance(thing, (staticmethod, classmethod))
        function = getattr(owner, name) if is_static else thing
        if inspect.isfunction(function) or inspect.ismethod(function):
            yield Function(f"{where}.{name}", function, owner, is_static)
        elif isinstance(thing, (property, cached_property)):
            yield Function(f"{where}.{name}", thing, owner)


@cache
def modules() -> tuple[ModuleType, ...]:
    """Every module of the packages that reads what others write."""
    read = _named(known.READERS)
    names = [
        found.name
        for package in map(importlib.import_module, PACKAGES)
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
        if any(found.name == name or found.name.startswith(f"{name}.") for name in read)
    ]
    assert not [name for name in read if name not in names], "a room or module that is not there"
    return tuple(map(importlib.import_module, names))


@cache
def left_out() -> frozenset[str]:
    """The names of what is left out."""
    return _named(known.LEFT_OUT)


def _named(known_names: dict[str, str]) -> frozenset[str]:
    return frozenset(f"{package}.{name}" for package, names in known_names.items() for name in names.split())


def covered(module: ModuleType) -> tuple[list[Function], list[str]]:
    """The functions of a module that read text, and what must be said of others: why they cannot be called."""
    found, wrong = [], []
    for function in functions_of(module):
        if function.name in left_out():
            continue
        try:
            shapes = [*function.shapes()]
        except LeftOut:
            continue
        except Unknown as error:
            wrong.append(f"{function.name}: how is {error} made?")
            continue
        if not shapes:
            continue
        failed = ""
        for read, many in shapes:
            try:
                function.call(read, replace(small(), many=many))()
                break
            except Exception as error:
                failed = failed or f"{type(error).__name__}: {error}"[:160]
        else:
            wrong.append(f"{function.name}: fails with harmless text ({failed})")
            continue
        found.append(function)
    return found, wrong
