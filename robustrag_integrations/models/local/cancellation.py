"""Giving up: work in a thread that nobody waits for any more ends where it next looks whether anybody does."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any, TypeVar

Result = TypeVar("Result")

_ABANDONED: ContextVar[threading.Event | None] = ContextVar("robustrag_local_abandoned", default=None)


class CancelledWork(Exception):
    """Nobody waits for the result; nobody sees this either."""


async def in_cancellable_thread(call: Callable[..., Result], *args: Any) -> Result:
    """Run a blocking call in a thread; it is given up when the caller is cancelled.

    Args:
        call: what calls `stop_if_cancelled` now and then.
        args: its arguments.
    """
    abandoned = threading.Event()

    def work() -> Result:
        _ABANDONED.set(abandoned)
        with suppress(CancelledWork):
            return call(*args)
        raise CancelledWork  # another one: that one's traceback holds the memory of what was under way

    try:
        return await asyncio.to_thread(work)
    finally:
        abandoned.set()


def stop_if_cancelled() -> None:
    """Called where work can stop: between two prompts that are read, and between two tokens.

    Raises:
        CancelledWork: nobody waits for this thread's work any more.
    """
    abandoned = _ABANDONED.get()
    if abandoned is not None and abandoned.is_set():
        raise CancelledWork


@contextmanager
def uncancelled() -> Iterator[None]:
    """A block that is not given up, as other questions need what it finds, too."""
    before = _ABANDONED.set(None)
    try:
        yield
    finally:
        _ABANDONED.reset(before)
