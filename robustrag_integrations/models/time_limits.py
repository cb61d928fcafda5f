"""Giving calls up: a time limit around any function, iterator or asynchronous iterator."""

from __future__ import annotations

import asyncio
import queue
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from concurrent.futures import Future, wait
from contextlib import suppress
from contextvars import copy_context
from typing import Any, TypeVar

Result = TypeVar("Result")

END: Any = object()  # comes after the last piece


def checked_timeout(timeout: float | None) -> float | None:
    """A time limit that makes sense.

    Raises:
        ValueError: it is no number above 0.
    """
    if timeout is not None and (isinstance(timeout, bool) or not timeout > 0):
        raise ValueError(f"timeout={timeout!r} must be above 0 seconds, or None for no limit")
    return timeout


def call_within(timeout: float | None, fn: Callable[..., Result], *args: Any) -> Result:
    """Call a function, and give up waiting after `timeout` seconds.

    Nothing can stop a function from outside: it runs in a daemon thread, which ends when the function returns.

    Raises:
        TimeoutError: the time is over.
    """
    if timeout is None:
        return fn(*args)
    done: Future[Result] = Future()
    context = copy_context()

    def call() -> None:
        try:
            done.set_result(context.run(fn, *args))
        except BaseException as error:
            done.set_exception(error)

    threading.Thread(target=call, name="robustrag-call", daemon=True).start()
    if not wait([done], timeout).done:
        raise TimeoutError(f"no answer within {timeout:g} s")
    return done.result()


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
    the result does: whoever cancels a stream from which pieces keep coming would be ignored.
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


def stream_within(timeout: float | None, pieces: Iterator[str]) -> Iterator[str]:
    """Give what an iterator gives, all of it within `timeout` seconds; it runs in a thread as in `call_within`.

    Raises:
        TimeoutError: the time is over.
    """
    if timeout is None:
        yield from pieces
        return
    deadline = time.monotonic() + timeout
    told: queue.SimpleQueue[tuple[str, BaseException | None]] = queue.SimpleQueue()
    abandoned = threading.Event()
    context = copy_context()
    run = context.run  # the pieces are made in one context, that of the caller
    threading.Thread(target=run, args=(_feed, pieces, told, abandoned), name="robustrag-stream", daemon=True).start()
    try:
        while True:
            try:
                piece, error = told.get(timeout=max(0.0, deadline - time.monotonic()))
            except queue.Empty:
                raise TimeoutError(f"no complete answer within {timeout:g} s") from None
            if error is not None:
                raise error
            if piece is END:
                return
            yield piece
    finally:
        abandoned.set()


def _feed(pieces: Iterator[str], told: queue.SimpleQueue[Any], abandoned: threading.Event) -> None:
    try:
        for piece in pieces:
            told.put((piece, None))
            if abandoned.is_set():
                break
        told.put((END, None))
    except BaseException as error:
        told.put(("", error))
    finally:
        close = getattr(pieces, "close", None)
        if close is not None:
            with suppress(Exception):  # nobody is left to be told
                close()


async def astream_within(timeout: float | None, pieces: AsyncIterator[str]) -> AsyncIterator[str]:
    """`stream_within` for an asynchronous iterator, which is cancelled when the time is over.

    Raises:
        TimeoutError: the time is over.
    """
    deadline = None if timeout is None else time.monotonic() + timeout
    try:
        while True:
            left = None if deadline is None else max(0.0, deadline - time.monotonic())
            told = asyncio.ensure_future(next_piece(pieces))
            if not await finishes_within(left, told):
                raise TimeoutError(f"no complete answer within {timeout:g} s")
            if (piece := told.result()) is END:
                return
            yield piece
    finally:
        close = getattr(pieces, "aclose", None)
        if close is not None:
            await close()


async def next_piece(pieces: AsyncIterator[Any]) -> Any:
    """The next piece, or `END`; a coroutine, which is what tasks are made of."""
    return await anext(pieces, END)
