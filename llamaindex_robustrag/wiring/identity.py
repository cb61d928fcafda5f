"""Which class something really is: known by identity, never by its name alone, and unless a subclass changed it."""

from __future__ import annotations

import gc
import os
import sys
import sysconfig
from collections.abc import Sequence
from functools import cached_property, lru_cache, partialmethod
from pathlib import Path
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any, TypeGuard, TypeVar

import llama_index.core
import pydantic
import workflows

_T = TypeVar("_T")
# A constructor sets fields, and these only describe; whatever else a subclass redefines may send texts elsewhere.
_HARMLESS = frozenset({"__init__", "__init_subclass__", "__repr__", "__str__", "class_name"})
_STDLIB = sysconfig.get_paths()["stdlib"] + os.sep
_SITE = tuple({sysconfig.get_paths()[name] + os.sep for name in ("purelib", "platlib")})
_OWN = Path(__file__).resolve().parents[2]
_LIBRARIES = tuple(
    f"{path}{os.sep}"
    for path in (
        Path(llama_index.core.__file__).parent,
        *(Path(entry) for entry in getattr(sys.modules["llama_index"], "__path__", ())),
        Path(workflows.__file__).parent,
        Path(pydantic.__file__).parent,
        _OWN / "llamaindex_robustrag",
        _OWN / "robustrag_integrations",
    )
)


def is_a(thing: object, kinds: type[_T] | tuple[type[_T], ...]) -> TypeGuard[_T]:
    """`isinstance` by what a thing is, not by what its `__class__` says, which may be code of the user's."""
    return issubclass(type(thing), kinds)


def is_library_file(file: str) -> bool:
    """Whether a file is the standard library's, LlamaIndex's, pydantic's or this project's."""
    if file.startswith(_LIBRARIES) or file.startswith("<frozen "):
        return True
    return file.startswith(_STDLIB) and not file.startswith(_SITE)


def is_installed(module: str) -> bool:
    """Whether a module is of an installed package that does not know LlamaIndex, or of the standard library."""
    package = module.split(".")[0]
    file = getattr(sys.modules.get(package), "__file__", None) or ""
    return package in sys.stdlib_module_names or (file.startswith(_SITE) and not _knows_llama_index(package))


def of_library(code: CodeType) -> bool:
    """Whether code is a library's, by the file it is from; an installed package's if it does not know LlamaIndex."""
    file = code.co_filename
    if is_library_file(file):
        return True
    site = next((site for site in _SITE if file.startswith(site)), None)
    return site is not None and not _knows_llama_index(file[len(site) :].split(os.sep)[0].removesuffix(".py"))


@lru_cache(maxsize=1024)
def _knows_llama_index(package: str) -> bool:
    """Whether any module of an installed package, as far as it is loaded, names something of LlamaIndex."""
    prefix = f"{package}."
    modules = [m for name, m in list(sys.modules.items()) if name == package or name.startswith(prefix)]
    values = (value for module in modules for value in list(getattr(module, "__dict__", {}).values()))
    return any(_origin(value).startswith(("llama_index.", "llamaindex_robustrag")) for value in values)


def _origin(value: object) -> str:
    if is_a(value, ModuleType):
        return str(value.__name__)
    if is_a(value, FunctionType):
        return str(value.__module__)
    return _plain(value if is_a(value, type) else type(value), "__module__")


def is_named(kind: type, package: str, names: frozenset[str]) -> bool:
    """Whether a class is one of these names of a package, and the one that the package's module really holds."""
    module, name = _plain(kind, "__module__"), _plain(kind, "__qualname__")
    if name not in names or not module.startswith(package):
        return False
    return getattr(sys.modules.get(module), "__dict__", {}).get(name) is kind


def is_llama_index(kind: type) -> bool:
    """Whether a class is LlamaIndex's own, or one of its integrations'."""
    return is_named(kind, "llama_index.", frozenset({_plain(kind, "__qualname__")}))


def _plain(kind: type, name: str) -> str:
    value = type.__getattribute__(kind, name)
    return value if is_a(value, str) else ""


def same_or_unchanged(thing: object, kind: type) -> bool:
    """Whether a thing is of this class, or of a subclass that changes none of its behaviour."""
    return kind in type(thing).__mro__ and not changes(thing, kind)


def changes(thing: object, kind: type) -> list[str]:
    """What a thing's own class, or the thing itself, redefines of a class that it derives from, by name."""
    mro = type(thing).__mro__
    found = {
        name
        for subclass in mro[: mro.index(kind)]
        for name, value in subclass.__dict__.items()
        if _redefines(name, value, kind)
    }
    own = attributes(thing)
    return sorted(found | {name for name, value in own.items() if callable(value) and _is_method(kind, name)})


def _redefines(name: str, value: object, kind: type) -> bool:
    if name in _HARMLESS or not _is_behaviour(value):
        return False
    function = function_in(value)
    if function is not None and of_library(function.__code__):  # what pydantic puts into every class
        return False
    if name.startswith("__"):
        return function is not None
    return any(name in base.__dict__ for base in kind.__mro__)


def _is_behaviour(value: object) -> bool:
    """Whether it is a function, method, property or the like, plain or wrapped."""
    kind = type(value)
    return not issubclass(kind, type) and any("__get__" in b.__dict__ or "__call__" in b.__dict__ for b in kind.__mro__)


def function_in(value: Any) -> FunctionType | None:
    """The function in a method, property, static or class method or wrapper; None where there is none."""
    kind = type(value)
    if issubclass(kind, property):
        value = value.fget
    elif issubclass(kind, (cached_property, partialmethod)):
        value = value.func
    elif issubclass(kind, (classmethod, staticmethod, MethodType)):
        value = value.__func__
    elif not issubclass(kind, FunctionType) and _is_behaviour(value):  # such as LlamaIndex's spans around methods
        value = next((held for held in gc.get_referents(value) if is_a(held, FunctionType)), None)
    return value if is_a(value, FunctionType) else None


def _is_method(kind: type, name: str) -> bool:
    return any(_is_behaviour(base.__dict__.get(name)) for base in kind.__mro__)


def attributes(thing: object) -> dict[str, object]:
    """A thing's attributes by name, in `__dict__`, slots and pydantic's private ones; none of its code is run."""
    found: dict[str, object] = {}
    for kind in reversed(type(thing).__mro__):
        for name, member in kind.__dict__.items():
            if type(member).__name__ == "member_descriptor":
                try:
                    found[name] = type(member).__get__(member, thing, kind)
                except AttributeError:  # a slot that is empty
                    continue
    found |= {name: value for name, value in own_dictionary(thing).items() if is_a(name, str)}
    for name in ("__pydantic_private__", "__pydantic_extra__"):
        if type(more := found.pop(name, None)) is dict:
            found |= more
    return found


def own_dictionary(thing: object) -> dict[str, object]:
    """A thing's `__dict__` itself; an empty one if it has none."""
    try:
        own = object.__getattribute__(thing, "__dict__")
    except (AttributeError, TypeError):
        own = None
    return own if type(own) is dict else {}


def is_trusted(thing: object, trusted: Sequence[object]) -> bool:
    """Whether the user vouched for a thing itself, for the function in it, or for its class."""
    function = getattr(thing, "__func__", None) if is_a(thing, MethodType) else None
    for one in trusted:
        if thing is one or (function is not None and function is getattr(one, "__func__", one)):
            return True
        if is_a(one, type) and same_or_unchanged(thing, one):
            return True
    return False
