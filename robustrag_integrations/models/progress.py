"""How many prompts of a batch a model has read so far, for whoever waits for it at a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

Listener = Callable[[int, int], None]

_LISTENER: ContextVar[Listener | None] = ContextVar("robustrag_progress", default=None)


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Have a listener called, from any thread, with the number of prompts that were read, and of how many."""
    before = _LISTENER.set(listener)
    try:
        yield
    finally:
        _LISTENER.reset(before)


def tell(read: int, of: int) -> None:
    """Tell the listener, if there is one, of a batch of several."""
    if of > 1 and (listener := _LISTENER.get()) is not None:
        listener(read, of)
