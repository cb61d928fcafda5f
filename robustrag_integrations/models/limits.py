"""Limits on a model's calls: the number that may be under way, and how long each may take.

A synchronous function cannot be stopped from outside. So a call that may be given up runs in a thread of its own; its
caller goes on without it after the time limit, and the thread ends when the function returns. Nothing can end such a
thread earlier, so the number of such threads is limited: at the limit, further calls fail at once. Calls that are under
way by then may still be given up, so there are fewer than the limit and the calls under way together.
"""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator
from concurrent import futures
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from contextvars import copy_context
from numbers import Real
from typing import Any, TypeVar

from robustrag_integrations._util.steps import closed_after
from robustrag_integrations.models.event_loops import PerLoop
from robustrag_integrations.models.threads import POOL, Task, called, in_thread

if sys.version_info >= (3, 11):
    cancelled_after = asyncio.timeout
else:
    import async_timeout

    cancelled_after = async_timeout.timeout

Result = TypeVar("Result")
Item = TypeVar("Item")

MOST_LEFT = 32  # calls that were given up and still run, from which on others fail, unless more may be under way
END: Any = object()  # comes after the last piece


def checked_timeout(timeout: float | None) -> float | None:
    """The time limit, if it is a valid one.

    Raises:
        ValueError: it is not a number above 0.
    """
    if timeout is not None and (isinstance(timeout, bool) or not isinstance(timeout, Real) or not timeout > 0):
        raise ValueError(f"timeout={timeout!r:.60} must be above 0 seconds, or None for no limit")
    return timeout


class CallLimits:
    """The limits of one client's calls, shared by all who call it.

    Args:
        calls: how many may be under way at a time in an event loop; synchronous callers share one. Once as many
            abandoned calls, and at least 32, still run, further ones fail.
        timeout: seconds for one try, or for a whole stream; None: no limit.
    """

    def __init__(self, calls: int = 1, timeout: float | None = None) -> None:
        self.calls, self.timeout = calls, checked_timeout(timeout)
        self._slots: PerLoop[dict[int, asyncio.Semaphore]] = PerLoop(dict)
        self._left: set[Task[Any]] = set()

    def __reduce__(self) -> tuple[type[CallLimits], tuple[int, float | None]]:
        """Pickle and copy the limits alone: a copy counts its own calls."""
        return CallLimits, (self.calls, self.timeout)

    @property
    def left(self) -> int:
        """The number of calls that were given up and still run."""
        for task in tuple(self._left):
            if task.ended:
                self._left.discard(task)
        return len(self._left)

    def lowered(self, cap: int | None) -> int:
        """Return the limit on calls under way, lowered to the cap."""
        return self.calls if cap is None else max(1, min(self.calls, cap))

    @asynccontextmanager
    async def slot(self, cap: int | None = None) -> AsyncGenerator[None, None]:
        """Hold a slot for a call, and one of those under this lower cap."""
        slots = self._slots.here()
        async with AsyncExitStack() as held:
            for count in dict.fromkeys((self.lowered(cap), self.calls)):
                await held.enter_async_context(slots.setdefault(count, asyncio.Semaphore(count)))
            yield

    async def in_thread(self, fn: Callable[..., Result], *args: Any) -> Result:
        """Call a function in a thread; it is given up when the caller is cancelled.

        Raises:
            TimeoutError: too many calls that were given up still run.
        """
        maximum = max(MOST_LEFT, self.calls)
        if self._left and (left := self.left) >= maximum:
            raise TimeoutError(
                f"{left} calls that ran out of time are still running; from {maximum} on, further calls fail: give the "
                "client of the model a time limit of its own"
            )
        task = POOL.submit(_called, fn, *args)
        try:
            result, cancelled = await asyncio.wrap_future(task)
        finally:
            if task.cancel():  # it still runs
                self._left.add(task)
        if cancelled is not None:
            raise cancelled
        found: Result = result
        return found

    async def within(self, awaitable: Awaitable[Result]) -> Result:
        """Await something, and cancel it after the time limit.

        Raises:
            TimeoutError: the time is over.
        """
        return await await_within(self.timeout, awaitable)

    async def iterate_in_thread(self, begin: Callable[..., Iterator[Item]], *args: Any) -> AsyncGenerator[Item, None]:
        """Yield what the iterator yields that a function returns, without blocking the event loop."""
        puller, context = _Puller(_begun(begin, *args)), copy_context()
        try:
            while (piece := await self.in_thread(context.run, puller.pull)) is not END:
                yield piece
        finally:
            await in_thread(puller.give_up)  # closing it may block

    async def iterate(self, pieces: AsyncIterator[Item]) -> AsyncGenerator[Item, None]:
        """Iterate within the time limit for the whole; then cancel the iterator.

        Raises:
            TimeoutError: the time is over.
        """
        deadline = None if self.timeout is None else time.monotonic() + self.timeout
        late = f"no complete answer within {self.timeout or 0:g} s"
        async with closed_after(pieces):
            while True:
                left = None if deadline is None else max(0.0, deadline - time.monotonic())
                if (piece := await await_within(left, anext(pieces, END), late)) is END:
                    return
                yield piece


def _called(fn: Callable[..., Result], *args: Any) -> tuple[Result | Any, futures.CancelledError | None]:
    """Call a model's function; return an error apart that asyncio would take for its own cancellation."""
    try:
        return called(fn, *args), None
    except futures.CancelledError as error:
        return None, error


def _begun(begin: Callable[..., Iterator[Item]], *args: Any) -> Iterator[Item]:
    """Begin an iterator with its first piece; closing this closes it."""
    yield from begin(*args)


class _Puller:
    """Pulls pieces from an iterator, in one thread after another, and closes it when no more are wanted."""

    def __init__(self, pieces: Iterator[Any]) -> None:
        self._pieces = pieces
        self._pulling = threading.Lock()
        self._given_up = False

    def pull(self) -> Any:
        """Return the next piece, or `END`."""
        with self._pulling:
            piece = next(self._pieces, END)
        if self._given_up:
            self.give_up()
        return piece

    def give_up(self) -> None:
        """Close the iterator, now or after the piece that is being made."""
        self._given_up = True
        if self._pulling.acquire(blocking=False):  # never released
            with suppress(Exception):  # the stream is no longer wanted
                getattr(self._pieces, "close", lambda: None)()


async def await_within(seconds: float | None, awaitable: Awaitable[Result], late: str | None = None) -> Result:
    """Await something, and cancel it after this many seconds.

    Raises:
        TimeoutError: the time is over; `late` says so.
    """
    if seconds is None:
        return await awaitable
    deadline = time.monotonic() + seconds
    try:
        async with cancelled_after(seconds):
            return await awaitable
    except asyncio.TimeoutError:
        if time.monotonic() < deadline:
            raise  # a time-out of the awaitable's own
    raise TimeoutError(late or f"no answer within {seconds:g} s")
