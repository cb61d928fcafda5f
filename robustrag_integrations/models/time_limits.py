"""Giving asynchronous calls up: a time limit around any awaitable or asynchronous iterator."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable
from numbers import Real
from typing import Any, TypeVar

from robustrag_integrations.closing import closed_after

Result = TypeVar("Result")
Item = TypeVar("Item")

END: Any = object()  # comes after the last piece


def checked_timeout(timeout: float | None) -> float | None:
    """The time limit, if it is a valid one.

    Raises:
        ValueError: it is not a number above 0.
    """
    if timeout is not None and (isinstance(timeout, bool) or not isinstance(timeout, Real) or not timeout > 0):
        raise ValueError(f"timeout={timeout!r:.60} must be above 0 seconds, or None for no limit")
    return timeout


async def await_within(timeout: float | None, awaitable: Awaitable[Result]) -> Result:
    """Await something, and cancel it after `timeout` seconds.

    Raises:
        TimeoutError: the time is over.
    """
    if timeout is None:
        return await awaitable
    task = asyncio.ensure_future(awaitable)
    if not await finishes_within(timeout, task):
        raise TimeoutError(f"no answer within {timeout:g} s")
    return task.result()


async def finishes_within(timeout: float | None, task: asyncio.Future[Any]) -> bool:
    """Whether a task comes to its end in time; it is cancelled if it does not, and when the caller is.

    This is what `asyncio.wait_for` does, but that one, before Python 3.12, loses a cancellation which comes just when
    the result does: cancelling a stream from which pieces keep coming would have no effect.
    """
    try:
        done, _ = await asyncio.wait((task,), timeout=timeout)
        if done:
            return True
    except asyncio.CancelledError:
        await _cancelled(task)
        raise
    await _cancelled(task)
    return not task.cancelled()


async def _cancelled(task: asyncio.Future[Any]) -> None:
    task.cancel()
    await asyncio.wait((task,))
    if not task.cancelled():
        task.exception()  # has been seen


async def astream_within(timeout: float | None, pieces: AsyncIterator[Item]) -> AsyncGenerator[Item, None]:
    """What an asynchronous iterator gives, all of it within `timeout` seconds; then it is cancelled.

    Raises:
        TimeoutError: the time is over.
    """
    deadline = None if timeout is None else time.monotonic() + timeout
    async with closed_after(pieces):
        while True:
            left = None if deadline is None else max(0.0, deadline - time.monotonic())
            coming = asyncio.ensure_future(next_piece(pieces))
            if not await finishes_within(left, coming):
                raise TimeoutError(f"no complete answer within {timeout:g} s")
            if (piece := coming.result()) is END:
                return
            yield piece


async def next_piece(pieces: AsyncIterator[Any]) -> Any:
    """The next piece, or `END`; a coroutine, which is what tasks are made of."""
    return await anext(pieces, END)
