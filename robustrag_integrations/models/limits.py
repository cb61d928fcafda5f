"""Limits on a model's calls: the number that may be under way, and how long each may take.

A synchronous function cannot be stopped from outside. So a call that may be given up runs in a thread of its own; its
caller goes on without it after the time limit, and the thread ends when the function returns. Nothing can end such a
thread earlier, so the number of such threads is limited: at the limit, further calls fail at once. Calls that are under
way by then may still be given up, so there are fewer than the limit and the calls under way together.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import sys
import threading
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Generator, Iterator
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, contextmanager, nullcontext, suppress
from contextvars import copy_context
from numbers import Real
from typing import Any, TypeVar

from robustrag_integrations._util.steps import closed_after
from robustrag_integrations.models.event_loops import PerLoop
from robustrag_integrations.models.exits import called
from robustrag_integrations.models.thread_pool import POOL, Task

if sys.version_info >= (3, 11):
    cancelled_after = asyncio.timeout
else:
    import async_timeout

    cancelled_after = async_timeout.timeout

Result = TypeVar("Result")
Item = TypeVar("Item")

MOST_LEFT = 32  # calls that were given up and still run, from which on others fail, unless more may be under way
END: Any = object()  # comes after the last piece

_TIMED_OUT = (TimeoutError, asyncio.TimeoutError, concurrent.futures.TimeoutError)  # one class from Python 3.11 on


def checked_timeout(timeout: float | None) -> float | None:
    """The time limit, if it is a valid one.

    Raises:
        ValueError: it is not a number above 0.
    """
    if timeout is not None and (isinstance(timeout, bool) or not isinstance(timeout, Real) or not timeout > 0):
        raise ValueError(f"timeout={timeout!r:.60} must be above 0 seconds, or None for no limit")
    return timeout


class Stop:
    """Tells calls that are made together that their replies are no longer wanted.

    Args:
        gives_up: True if it also reaches calls that are under way, which then run in threads of their own.
    """

    def __init__(self, *, gives_up: bool) -> None:
        self.gives_up = gives_up
        self.told = threading.Event()
        self._tasks: set[Task[Any]] = set()

    def tell(self) -> None:
        """Give up what is under way, and what waits to be asked again."""
        self.told.set()
        for task in tuple(self._tasks):
            task.cancel()

    @contextmanager
    def reaches(self, task: Task[Any]) -> Iterator[None]:
        """Within the block, give up the task when the others are."""
        self._tasks.add(task)
        if self.told.is_set():
            task.cancel()
        try:
            yield
        finally:
            self._tasks.discard(task)


class CallLimits:
    """The limits of one client's calls, shared by all who call it.

    Args:
        calls: how many may be under way at a time, over all threads; each event loop has as many. Once as many
            abandoned calls, and at least 32, still run, further ones fail.
        timeout: seconds for one try, or for a whole stream; None: no limit.
    """

    def __init__(self, calls: int = 1, timeout: float | None = None) -> None:
        self.calls, self.timeout = calls, checked_timeout(timeout)
        self._in_threads: dict[int, threading.Semaphore] = {}
        self._in_loops: PerLoop[dict[int, asyncio.Semaphore]] = PerLoop(dict)
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

    @contextmanager
    def slot(self, cap: int | None = None) -> Iterator[None]:
        """Hold a slot for a call from a thread, and one of those under this lower cap."""
        with ExitStack() as held:
            for count in dict.fromkeys((self.lowered(cap), self.calls)):
                held.enter_context(self._in_threads.setdefault(count, threading.Semaphore(count)))
            yield

    @asynccontextmanager
    async def aslot(self, cap: int | None = None) -> AsyncGenerator[None, None]:
        """`slot` for a call from this event loop."""
        places = self._in_loops.here()
        async with AsyncExitStack() as held:
            for count in dict.fromkeys((self.lowered(cap), self.calls)):
                await held.enter_async_context(places.setdefault(count, asyncio.Semaphore(count)))
            yield

    def run(self, fn: Callable[..., Result], *args: Any, stop: Stop | None = None) -> Result:
        """Call a function in a thread; give it up after the time limit, or at a stop.

        Raises:
            TimeoutError: the time is over, or too many calls that were given up still run.
            concurrent.futures.CancelledError: at a stop.
        """
        return self._wait(self._submit(fn, *args), self.timeout, f"no answer within {self.timeout or 0:g} s", stop)

    async def arun(self, fn: Callable[..., Result], *args: Any) -> Result:
        """Call a function in a thread; it is given up when the caller is cancelled."""
        task = self._submit(fn, *args)
        try:
            return await asyncio.wrap_future(task)
        finally:
            self._dismiss(task)

    async def within(self, awaitable: Awaitable[Result]) -> Result:
        """Await something, and cancel it after the time limit.

        Raises:
            TimeoutError: the time is over.
        """
        return await await_within(self.timeout, awaitable)

    def iterate(self, pieces: Iterator[Item]) -> Generator[Item, None, None]:
        """Iterate within the time limit for the whole; without a limit, in this thread.

        Raises:
            TimeoutError: the time is over, or too many calls that were given up still run.
        """
        if self.timeout is None:
            yield from pieces
            return
        deadline, puller, context = time.monotonic() + self.timeout, _Puller(pieces), copy_context()
        late = f"no complete answer within {self.timeout:g} s"
        try:
            while True:
                task = self._submit(context.run, puller.pull)
                if (piece := self._wait(task, max(0.0, deadline - time.monotonic()), late)) is END:
                    return
                yield piece
        finally:
            puller.give_up()

    async def iterate_in_thread(self, pieces: Iterator[Item]) -> AsyncGenerator[Item, None]:
        """Iterate in threads, without blocking the event loop."""
        puller, context = _Puller(pieces), copy_context()
        try:
            while (piece := await self.arun(context.run, puller.pull)) is not END:
                yield piece
        finally:
            puller.give_up()

    async def aiterate(self, pieces: AsyncIterator[Item]) -> AsyncGenerator[Item, None]:
        """Iterate over an asynchronous iterator within the time limit for the whole; then cancel it.

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

    def _wait(self, task: Task[Result], seconds: float | None, late: str, stop: Stop | None = None) -> Result:
        with stop.reaches(task) if stop is not None else nullcontext():
            try:
                return task.result(seconds)
            except _TIMED_OUT:
                if task.cancel():
                    raise TimeoutError(late) from None
                return task.result()  # a time-out of the function's own, or it has just finished
            finally:
                self._dismiss(task)

    def _submit(self, fn: Callable[..., Result], *args: Any) -> Task[Result]:
        maximum = max(MOST_LEFT, self.calls)
        if self._left and (left := self.left) >= maximum:
            raise TimeoutError(
                f"{left} calls that ran out of time are still running; from {maximum} on, further calls fail: give the "
                "client of the model a time limit of its own"
            )
        return POOL.submit(called, fn, *args)

    def _dismiss(self, task: Task[Any]) -> None:
        """Abandon a task; if it still runs, it counts among those given up."""
        if task.cancel():
            self._left.add(task)


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
