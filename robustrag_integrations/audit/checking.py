"""One check at a time, and methods that are replaced while it runs."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from functools import wraps
from inspect import iscoroutinefunction
from typing import Any, TypeAlias

from robustrag_integrations.audit.findings import Finding
from robustrag_integrations.errors import UndefendedError

Around: TypeAlias = Callable[[Any, Any, Any], AbstractContextManager[Callable[[Any], Any]]]
Replaced: TypeAlias = tuple[type, str, Any]  # a class, a method's name, and a method

_CHECKING = threading.Lock()


@contextmanager
def one_check(findings: Sequence[Finding]) -> Iterator[None]:
    """Be the only check of this process. Where the block fails, raise what was found, which may be the reason.

    Raises:
        RuntimeError: another one is running.
    """
    if not _CHECKING.acquire(blocking=False):
        raise RuntimeError("another assert_defended is running in this process; run them one after the other")
    try:
        yield
    except Exception as error:
        if findings:
            raise UndefendedError(findings) from error
        raise
    finally:
        _CHECKING.release()


def methods_of(base: type, is_meant: Callable[[str], object], but: type | None = None) -> list[Replaced]:
    """Return the methods of a class and all that are derived from it, wherever they are defined.

    Args:
        base: the class.
        is_meant: tells the methods by their names.
        but: a class that is left out.
    """
    classes: list[type] = [base]
    for each in classes:
        derived: list[type] = each.__subclasses__()
        classes += [cls for cls in derived if cls not in classes]
    return [
        (cls, name, method)
        for cls in classes
        if cls is not but
        for name, method in list(vars(cls).items())
        if is_meant(name) and callable(method) and not getattr(method, "__isabstractmethod__", False)
    ]


def replace_methods(stock: Iterable[Replaced], around: Callable[[Any], Any] = lambda method: method) -> None:
    """Put `around(method)` in the place of each method; by default the method itself, which undoes it."""
    for cls, name, method in stock:
        setattr(cls, name, around(method))


def wrapped(method: Any, around: Around, instead: Callable[[Any, Any, Any], Any] = lambda *call: None) -> Any:
    """Return a method that runs within a context, whose value makes its result.

    Args:
        method: the method, asynchronous or not.
        around: from the object and the arguments of a call to the context.
        instead: the same to a result with which the method is not called; None calls it.
    """

    @wraps(method)
    async def acalled(self: Any, *args: Any, **kwargs: Any) -> Any:
        if (result := instead(self, args, kwargs)) is not None:
            return result
        with around(self, args, kwargs) as result_of:
            result = await method.__get__(self, type(self))(*args, **kwargs)
        return result_of(result)

    @wraps(method)
    def called(self: Any, *args: Any, **kwargs: Any) -> Any:
        if (result := instead(self, args, kwargs)) is not None:
            return result
        with around(self, args, kwargs) as result_of:
            result = method.__get__(self, type(self))(*args, **kwargs)
        return result_of(result)

    return acalled if iscoroutinefunction(method) else called


@contextmanager
def having(variable: ContextVar[Any], value: Any) -> Iterator[None]:
    """Set a context variable while the block runs."""
    token = variable.set(value)
    try:
        yield
    finally:
        variable.reset(token)
