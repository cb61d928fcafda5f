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


class GivenUpError(Exception):
    """Nobody waits for the result; nobody sees this either."""


async def given_up_with_the_caller(call: Callable[..., Result], *args: Any) -> Result:
    """Run a blocking call in a thread; it is given up when the caller is cancelled.

    Args:
        call: what calls `stop_if_given_up` now and then.
        args: its arguments.
    """
    abandoned = threading.Event()

    def work() -> Result:
        _ABANDONED.set(abandoned)
        with suppress(GivenUpError):
            return call(*args)
        raise GivenUpError  # another one: that one's traceback holds the memory of what was under way

    try:
        return await asyncio.to_thread(work)
    finally:
        abandoned.set()


def stop_if_given_up() -> None:
    """Called where work can stop: between two prompts that are read, and between two tokens.

    Raises:
        GivenUpError: nobody waits for this thread's work any more.
    """
    abandoned = _ABANDONED.get()
    if abandoned is not None and abandoned.is_set():
        raise GivenUpError


@contextmanager
def carried_through() -> Iterator[None]:
    """A block that is not given up, as other questions need what it finds, too."""
    before = _ABANDONED.set(None)
    try:
        yield
    finally:
        _ABANDONED.reset(before)
