"""What a function or an object can reach: its closure, defaults, globals, instance, helpers and service objects."""

from __future__ import annotations

import builtins
import functools
import inspect
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from pathlib import Path
from types import CellType, CodeType, FunctionType, MethodType, ModuleType, SimpleNamespace
from typing import Any

from langchain_core.language_models import BaseLanguageModel
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool
from pydantic import BaseModel

from langchain_robustrag.wiring.kinds import is_model, is_ours, is_source

_MOST = 20_000  # objects that are looked at from one place
_LIBRARIES = ("langchain", "langchain_core", "langchain_classic", "langgraph", "langsmith", "langchain_robustrag")
_NOT_OPENED = ("numpy", "torch", "transformers", "pydantic", "pydantic_core", "httpx", *_LIBRARIES)
_WRITES = ("add_", "aadd_", "delete", "adelete", "upsert", "count", "embeddings")  # no method that gives texts
_CALLED = frozenset(
    {"invoke", "ainvoke", "stream", "astream", "transform", "atransform", "batch", "abatch", "_call", "_acall"}
    | {"_generate", "_agenerate", "_stream", "_astream", "format_prompt", "format_messages", "format"}
)  # what is called of a Runnable
_BY_NAME = frozenset(
    {"getattr", "vars", "globals", "locals", "__dict__", "attrgetter", "methodcaller", "import_module"}
)
_PLAIN = (str, bytes, bytearray, int, float, complex, bool, type(None), CodeType)


def reach(value: object, trusted: Callable[[object], bool]) -> Iterator[tuple[str, object]]:
    """What is reached from a value, with how: retrievers, models, Runnables, tools, and modules that cannot be opened.

    These themselves are not opened.
    """
    called = _CALLED if isinstance(value, Runnable) else frozenset[str]()
    waiting: list[tuple[str, object, frozenset[str]]] = [("", value, called)]
    seen: set[tuple[int, frozenset[str]]] = set()
    keep: list[object] = []
    while waiting and len(seen) < _MOST:
        path, item, names = waiting.pop()
        if isinstance(item, _PLAIN) or (id(item), names) in seen or trusted(item):
            continue
        seen.add((id(item), names))
        keep.append(item)
        if item is not value and _is_leaf(item):
            if not only_written(item, names):
                yield path, item
            continue
        waiting.extend((f"{path}{step}", inner, inside) for step, inner, inside in _opened(item, names))


def code_names(function: object) -> tuple[frozenset[str], frozenset[str]]:
    """The names (attributes, globals) and the words in a function's code, those of its inner functions included."""
    names: set[str] = set()
    words: set[str] = set()
    waiting = [code for f in _functions(function) if isinstance(code := getattr(f, "__code__", None), CodeType)]
    while waiting:
        code = waiting.pop()
        names.update(code.co_names)
        for constant in _constants(code.co_consts):
            if isinstance(constant, str):
                words.add(constant)
            elif isinstance(constant, CodeType):
                waiting.append(constant)
    if names & _BY_NAME:  # what is named may then be looked up by a word
        names |= {word for word in words if word.isidentifier()}
    return frozenset(names), frozenset(words)


def closure(function: FunctionType) -> dict[str, Any]:
    """What a function's closure holds, by name."""
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=False)
    return {name: found[0] for name, cell in cells if (found := _content(cell))}


def _content(cell: CellType) -> tuple[Any, ...]:
    try:
        return (cell.cell_contents,)
    except ValueError:
        return ()  # not yet filled


def is_library(function: object) -> bool:
    """Whether a function is LangChain's or LangGraph's own: what its globals are is no concern of ours."""
    code = getattr(inspect.unwrap(function) if callable(function) else function, "__code__", None)
    if code is None:
        return False
    roots = [getattr(sys.modules.get(name), "__path__", None) for name in _LIBRARIES]
    folders = [Path(folder) for root in roots if root for folder in root]
    return any(folder in Path(code.co_filename).parents for folder in folders)


def _is_leaf(value: object) -> bool:
    if is_ours(value) or is_source(value) or is_model(value):
        return True
    return isinstance(value, (Runnable, BaseTool, BaseLanguageModel))


def only_written(value: object, names: frozenset[str]) -> bool:
    """Whether a store is put into, counted or deleted from, and never read, by code with these names."""
    used = {name for name in names if hasattr(type(value), name) and not hasattr(object, name)}
    if not is_source(value) or isinstance(value, type) or not used or "getattr" in names:
        return False
    return all(
        name.startswith(("add_", "aadd_", "delete", "adelete", "upsert", "count", "embeddings")) for name in used
    )


def _opened(item: Any, names: frozenset[str]) -> Iterator[tuple[str, object, frozenset[str]]]:
    if isinstance(item, Mapping):
        yield from ((f"[{key!r:.40}]", value, names) for key, value in list(item.items())[:1000])
    elif isinstance(item, (list, tuple, set, frozenset)):
        yield from ((f"[{at}]", value, names) for at, value in enumerate(list(item)[:1000]))
    elif isinstance(item, functools.partial):
        yield from (("", part, names) for part in (item.func, item.args, item.keywords))
    elif isinstance(item, MethodType):
        own = code_names(item)[0]
        yield ".self", item.__self__, names | own
        yield "", item.__func__, names
    elif isinstance(item, FunctionType):
        yield from _function_holds(item)
    elif isinstance(item, ModuleType):
        yield from ((f".{name}", getattr(item, name), names) for name in names if _has(item, name))
    elif isinstance(item, type):
        yield from _class_holds(item, names)
    elif isinstance(item, ContextVar):
        yield "", item.get(None), names
    elif (wrapped := inspect.getattr_static(item, "__wrapped__", None)) is not None:  # some raise when they are asked
        yield "", wrapped, names
    elif _is_opened(item):
        yield from ((f".{name}", value, names) for name, value in _attributes(item).items())
        yield from _class_holds(type(item), names)


def _function_holds(function: FunctionType) -> Iterator[tuple[str, object, frozenset[str]]]:
    names, _ = code_names(function)
    if hasattr(function, "__wrapped__"):
        yield "", function.__wrapped__, names
    yield from ((f":{name}", value, names) for name, value in closure(function).items())
    yield from ((":default", value, names) for value in (function.__defaults__ or ()))
    yield from ((f":{name}", value, names) for name, value in (function.__kwdefaults__ or {}).items())
    if not is_library(function):
        held = {name: function.__globals__[name] for name in names if name in function.__globals__}
        yield from ((f":{name}", value, names) for name, value in held.items() if not _is_builtin(value))
        yield from (("", module, names) for module in _imported(function))


def _imported(function: FunctionType) -> Iterator[ModuleType]:
    """Modules that the function imports itself, as far as they are loaded; their relevant names are looked up."""
    names, _ = code_names(function)
    for name in names:
        module = sys.modules.get(name)
        if (
            module is not None
            and name not in function.__globals__
            and name.partition(".")[0] not in sys.stdlib_module_names
        ):
            yield module


def _class_holds(cls: type, names: frozenset[str]) -> Iterator[tuple[str, object, frozenset[str]]]:
    """The methods that are called and the attributes that are read, of a class that is no library's."""
    if cls.__module__.partition(".")[0] in {*sys.stdlib_module_names, *_NOT_OPENED, "builtins"}:
        return
    for name in {"__init__", "__call__", *names}:
        found = next((vars(base)[name] for base in cls.__mro__ if name in vars(base)), None)
        found = getattr(found, "__func__", getattr(found, "fget", found))
        found = found.func if isinstance(found, functools.cached_property) else found
        if isinstance(found, FunctionType):
            if not is_library(found):
                yield f".{name}", found, names
        elif found is not None and not name.startswith("__"):
            yield f".{name}", found, names


def _is_opened(item: object) -> bool:
    root = type(item).__module__.partition(".")[0]
    if isinstance(item, (SimpleNamespace, threading.local)):
        return True
    if root in sys.stdlib_module_names or root == "builtins":
        return False
    return root not in ("numpy", "torch", "transformers", "pydantic_core", "httpx", "langsmith")


def _attributes(item: object) -> dict[str, Any]:
    if isinstance(item, BaseModel):
        return {**vars(item), **(item.__pydantic_private__ or {})}
    held = dict(getattr(item, "__dict__", {}))
    for cls in type(item).__mro__:
        slots = vars(cls).get("__slots__", ())
        for name in [slots] if isinstance(slots, str) else slots:
            if not name.startswith("__") and (value := getattr(item, name, None)) is not None:
                held[name] = value
    return held


def _functions(value: Any) -> list[Any]:
    """The functions behind a callable."""
    while isinstance(value, functools.partial):
        value = value.func
    found = [value]
    if not isinstance(value, (FunctionType, MethodType)) and callable(value) and not isinstance(value, type):
        found.append(vars(type(value)).get("__call__"))
    return [inspect.unwrap(f) if callable(f) else f for f in found] + found


def _constants(values: tuple[Any, ...]) -> Iterator[Any]:
    for value in values:
        if isinstance(value, (tuple, frozenset)):
            yield from _constants(tuple(value))
        else:
            yield value


def _is_builtin(value: object) -> bool:
    return getattr(value, "__module__", None) == "builtins" or any(value is b for b in vars(builtins).values())


def _has(module: ModuleType, name: str) -> bool:
    return name in vars(module)
