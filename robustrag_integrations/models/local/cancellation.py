"""Cooperative cancellation: abandoned work in a thread stops at its next check."""

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
    """Ends abandoned work; no caller sees it."""


async def in_cancellable_thread(call: Callable[..., Result], *args: Any) -> Result:
    """Run a blocking call in a thread; when the caller is cancelled, the call's next `stop_if_cancelled` ends it."""
    abandoned = threading.Event()

    def work() -> Result:
        _ABANDONED.set(abandoned)
        with suppress(CancelledWork):
            return call(*args)
        raise CancelledWork  # a new one: the traceback of the one caught holds the work's memory

    try:
        return await asyncio.to_thread(work)
    finally:
        abandoned.set()


def stop_if_cancelled() -> None:
    """Stop abandoned work; called between two prompts that are read, and between two tokens."""
    abandoned = _ABANDONED.get()
    if abandoned is not None and abandoned.is_set():
        raise CancelledWork


@contextmanager
def uncancelled() -> Iterator[None]:
    """Shield a block from cancellation, as other questions need its result, too."""
    before = _ABANDONED.set(None)
    try:
        yield
    finally:
        _ABANDONED.reset(before)
