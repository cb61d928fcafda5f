"""The words and names in a function's code and in that of the helpers it calls, and what it does with them."""

from __future__ import annotations

import dis
import functools
from collections.abc import Iterator
from inspect import CO_VARARGS
from types import CodeType, FunctionType, MethodType
from typing import Any

from langchain_robustrag.wiring.holdings import closure, code_names, is_library

_GETTERS = ("get", "pop", "pick", "itemgetter")


def all_words(function: Any, _seen: frozenset[int] = frozenset()) -> tuple[frozenset[str], frozenset[str]]:
    """The names (attributes and globals) and the words (string constants); a key that is read is among them."""
    names, words = code_names(function)
    for helper in _helpers(function, names):
        if id(helper) not in _seen and len(_seen) < 100:
            more, other = all_words(helper, _seen | {id(function), id(helper)})
            names, words = names | more, words | other
    return names, words


def _helpers(function: Any, names: frozenset[str]) -> list[Any]:
    """The functions and methods of the program's own that a function may call."""
    held: list[Any] = []
    if isinstance(function, MethodType):
        held = [getattr(type(function.__self__), name, None) for name in names]
        function = function.__func__
    if isinstance(function, FunctionType) and not is_library(function):
        held += [function.__globals__.get(name) for name in names]
        held += closure(function).values()
    return [f for f in held if isinstance(f, (FunctionType, MethodType)) and not is_library(f)]


def words_written(function: Any) -> frozenset[str]:
    """Words of a function's code that are not only read from a dict."""
    code = _code(function)
    return all_words(function)[1] if code is None else frozenset(w for w, read in _used(code) if not read)


def words_read(function: Any, _seen: frozenset[int] = frozenset()) -> frozenset[str]:
    """Words that are read from a dict, by a function or by a helper that it calls: `x["word"]`, `x.get("word")`."""
    code = _code(function)
    found = frozenset(w for w, read in _used(code) if read) if code is not None else frozenset[str]()
    for helper in _helpers(function, code_names(function)[0]):
        if id(helper) not in _seen and len(_seen) < 100:
            found |= words_read(helper, _seen | {id(function), id(helper)})
    return found


def reads_argument(function: Any) -> bool:
    """Whether a function reads what it is given; one whose code cannot be seen may."""
    code = _code(function)
    if code is None or not code.co_argcount:
        return code is None or bool(code.co_flags & CO_VARARGS)
    own = code.co_varnames[: code.co_argcount]
    first = own[1] if isinstance(function, MethodType) and len(own) > 1 else own[0]
    return any(
        first == step.argval or (isinstance(step.argval, tuple) and first in step.argval) for step in _steps(code)
    )


def hands_on(function: Any) -> bool:
    """Whether a function calls one thing alone and gives back what that gave, as it is."""
    code = _code(function)
    if code is None:
        return False
    steps = [step.opname for step in _steps(code)]
    calls = [at for at, name in enumerate(steps) if name.startswith("CALL") and not name.startswith("CALL_INTRINSIC")]
    built = ("BUILD_", "FORMAT_", "BINARY_", "COMPARE_", "MAKE_FUNCTION", "UNPACK_")
    return len(calls) == 1 and not any(name.startswith(built) for name in steps[calls[0] + 1 :])


def _code(function: Any) -> CodeType | None:
    while isinstance(function, functools.partial):
        function = function.func
    code = getattr(getattr(function, "__func__", function), "__code__", None)
    return code if isinstance(code, CodeType) else None


def _steps(code: CodeType) -> list[dis.Instruction]:
    return [i for i in dis.get_instructions(code) if i.opname not in ("CACHE", "PRECALL", "EXTENDED_ARG", "PUSH_NULL")]


def _used(code: CodeType) -> Iterator[tuple[str, bool]]:
    """The words, and whether each is read from a dict where it stands."""
    steps = _steps(code)
    for before, step, after in zip([None, *steps], steps, [*steps[1:], None], strict=False):
        if isinstance(step.argval, CodeType):
            yield from _used(step.argval)
        elif step.opname == "LOAD_CONST":
            words = step.argval if isinstance(step.argval, tuple) else (step.argval,)
            read = _subscripts(after) or _gets(before)
            yield from ((word, read) for word in words if isinstance(word, str))


def _subscripts(step: dis.Instruction | None) -> bool:
    if step is None:
        return False
    return step.opname in ("BINARY_SUBSCR", "MATCH_KEYS") or (step.opname == "BINARY_OP" and step.argrepr == "[]")


def _gets(step: dis.Instruction | None) -> bool:
    return step is not None and step.opname.startswith("LOAD_") and step.argval in _GETTERS
