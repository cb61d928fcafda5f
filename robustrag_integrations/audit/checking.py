"""Methods of whole families of classes that are replaced for a while."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from inspect import iscoroutinefunction
from typing import Any, TypeAlias

Replaced: TypeAlias = tuple[type, str, Any]  # a class, a method's name, and a method


def methods_of(base: type, is_meant: Callable[[str], object], but: type | None = None) -> list[Replaced]:
    """Return the methods of these names that a class and all that are derived from it define, but for one class's."""
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


def changed(
    method: Any, after: Callable[..., Any], before: Callable[[Any], Any] = lambda called: called
) -> Callable[..., Any]:
    """Return a method, asynchronous or not, whose object and result are changed; `after` gets the arguments, too."""

    @wraps(method)
    async def acalled(self: Any, *args: Any, **kwargs: Any) -> Any:
        return after(self, await method(before(self), *args, **kwargs), *args)

    @wraps(method)
    def called(self: Any, *args: Any, **kwargs: Any) -> Any:
        return after(self, method(before(self), *args, **kwargs), *args)

    return acalled if iscoroutinefunction(method) else called


@contextmanager
def having(variable: ContextVar[Any], value: Any) -> Iterator[None]:
    """Set a context variable while the block runs."""
    token = variable.set(value)
    try:
        yield
    finally:
        variable.reset(token)
