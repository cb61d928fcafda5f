"""What an object holds, read without running any code of the user's."""

from __future__ import annotations

import gc
import sys
import weakref
from collections import deque
from collections.abc import Iterator
from contextvars import ContextVar
from functools import partial
from logging import Logger
from types import CodeType, FrameType, ModuleType
from typing import Any

import numpy
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.callbacks.base import CallbackManager
from llama_index.core.callbacks.base_handler import BaseCallbackHandler
from llama_index_instrumentation.dispatcher import Dispatcher
from pydantic import BaseModel

from llamaindex_robustrag.wiring.identity import (
    attributes,
    function_in,
    is_a,
    is_installed,
    is_library_file,
    is_named,
    of_library,
    own_dictionary,
)

# They hold nothing, or what they hold goes into no prompt: a tracer that remembers nodes is no leak.
_ATOMS: tuple[type, ...] = (
    type(None),
    bool,
    int,
    float,
    complex,
    str,
    bytes,
    bytearray,
    range,
    slice,
    CodeType,
)
_BYSTANDERS: tuple[type, ...] = (CallbackManager, BaseCallbackHandler, Dispatcher, Logger, BaseEmbedding, FrameType)
_RESOURCES = frozenset({"_Resource"})  # they keep all variables of where they were written, to read annotations
_LISTS: tuple[type, ...] = (list, tuple, set, frozenset, deque)


def is_atom(thing: object) -> bool:
    """Whether it is a plain number, text or the like: a tokenizer has hundreds of thousands of them."""
    return type(thing) in _ATOMS


def holds_nothing(thing: object) -> bool:
    """Whether there is nothing to look into."""
    if is_a(thing, ModuleType):
        return is_library_file(getattr(thing, "__file__", None) or "") or is_installed(thing.__name__)
    return is_atom(thing) or is_a(thing, _BYSTANDERS)


def held_by(thing: Any) -> Iterator[tuple[str, object]]:
    """What an object that is neither a function nor a class holds, with how to get there."""
    if is_a(thing, dict):
        for key, value in list(dict.items(thing)):  # the program may change it while it is looked at
            name = repr(key) if type(key) in (str, int) else type(key).__name__
            yield f"[{name:.60}]", value
            yield f"[{name:.60}]", key
    elif is_a(thing, _LISTS):
        base: Any = next(kind for kind in _LISTS if is_a(thing, kind))
        yield from ((f"[{at}]", value) for at, value in enumerate(list(base.__iter__(thing))))
    elif is_a(thing, numpy.ndarray):
        if thing.dtype.hasobject:
            yield from ((f"[{at}]", value) for at, value in enumerate(numpy.ndarray.flatten(thing).tolist()))
    elif is_a(thing, weakref.ref):
        yield "()", weakref.ref.__call__(thing)
    elif is_a(thing, ContextVar):
        yield ".get()", thing.get(None)
    named = attributes(thing)
    if is_named(type(thing), "workflows.", _RESOURCES):
        named.pop("_localns", None)
    yield from ((f".{name}", value) for name, value in named.items())
    if not is_a(thing, (dict, *_LISTS, BaseModel, partial)):  # what else the interpreter sees in it
        known = {id(value) for value in named.values()} | {id(own_dictionary(thing))}
        for value in gc.get_referents(thing):
            if id(value) not in known and not is_a(value, type):
                yield "", value


def methods_of(kind: type) -> Iterator[tuple[str, object]]:
    """What the user wrote into a class: functions, properties, attributes; not what it inherits from a library."""
    for base in kind.__mro__:
        if users_class(base):
            for name, value in base.__dict__.items():
                if not name.startswith("__") or function_in(value) is not None:
                    yield name, value


def users_class(kind: type) -> bool:
    """Whether the user wrote a class, by the files of its functions and of its module."""
    if any(f is not None and not of_library(f.__code__) for f in map(function_in, kind.__dict__.values())):
        return True
    file = getattr(sys.modules.get(kind.__module__), "__file__", None) or "<frozen >"
    return not is_library_file(file) and not is_installed(kind.__module__)
