"""Limits of calls: how many at a time, how long each may take, and how long to pause before another try.

A synchronous function cannot be stopped from outside. It runs in a thread; its caller goes on without it after the time
limit. Nothing can end such a thread before the function returns, so their number is limited; then further calls fail.
"""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Generator, Iterator, Mapping
from concurrent import futures
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from contextvars import copy_context
from numbers import Real
from typing import Any, TypeVar, cast

from robustrag_integrations._util.steps import closed_after
from robustrag_integrations.models.threads import END, PerLoop, Task, acalled, called, in_thread, started

if sys.version_info >= (3, 11):
    cancelled_after = asyncio.timeout
else:
    import async_timeout

    cancelled_after = async_timeout.timeout

Result = TypeVar("Result")
Item = TypeVar("Item")

TRANSIENT: tuple[type[Exception], ...] = (ConnectionError, TimeoutError, asyncio.TimeoutError)
AT_ONCE = 10  # calls of one object where its client has no limit
MOST_LEFT = 32  # calls that were given up and still run, from which on others fail, unless more may be under way
LONGEST_WAIT = 60.0  # seconds; a server that asks for more gets no other try
_FIRST_WAIT, _LAST_WAIT = 0.5, 20.0  # the longest pauses before the second and before any try
_BUSY = (408, 409, 429)  # and all of 500 and above


def checked_timeout(timeout: float | None) -> float | None:
    """Return the time limit, which must be a number above 0, or None."""
    if timeout is not None and (isinstance(timeout, bool) or not isinstance(timeout, Real) or not timeout > 0):
        raise ValueError(f"timeout={timeout!r:.60} must be above 0 seconds, or None for no limit")
    return timeout


def is_busy(error: BaseException) -> bool:
    """True if the server cannot answer now (408, 409, 429, or 500 and above), by the status of any client's error."""
    for one in (error, error.__cause__, error.__context__):
        response = getattr(one, "response", None)
        of_boto = response.get("ResponseMetadata", {}) if isinstance(response, Mapping) else {}
        found = [getattr(one, name, None) for name in ("status_code", "status", "code")]
        for status in (*found, getattr(response, "status_code", None), of_boto.get("HTTPStatusCode")):
            if isinstance(status, int) and 100 <= status < 600:
                return status in _BUSY or status >= 500
    return False


def retry_after(error: BaseException) -> float | None:
    """Return the seconds of the server's `Retry-After`; None if it sent none."""
    for one in (error, error.__cause__, error.__context__):
        headers: Any = getattr(getattr(one, "response", None), "headers", None) or {}
        with suppress(AttributeError, TypeError, ValueError):
            return max(0.0, float(getattr(one, "retry_after", None) or headers.get("retry-after")))
    return None


class CallLimits:
    """The limits of one client's calls, shared by all who call it.

    Args:
        calls: how many may be under way at a time in an event loop; synchronous callers share one. None: no limit.
        timeout: seconds for one try, or for a whole stream; None: no limit.
    """

    def __init__(self, calls: int | None = 1, timeout: float | None = None) -> None:
        self.calls, self.timeout = calls, checked_timeout(timeout)
        self._slots: PerLoop[dict[int, asyncio.Semaphore]] = PerLoop(dict)
        self._left: set[Task[Any]] = set()

    def __reduce__(self) -> tuple[type[CallLimits], tuple[int | None, float | None]]:
        return CallLimits, (self.calls, self.timeout)  # a copy counts its own calls

    @property
    def left(self) -> int:
        """The number of calls that were given up and still run."""
        self._left -= {task for task in tuple(self._left) if task.ended}
        return len(self._left)

    def lowered(self, cap: int | None) -> int | None:
        """Return the limit on calls under way, lowered to the cap."""
        if cap is None:
            return self.calls
        return max(1, cap if self.calls is None else min(self.calls, cap))

    @asynccontextmanager
    async def slot(self, cap: int | None = None, own: asyncio.Semaphore | None = None) -> AsyncGenerator[None, None]:
        """Hold a slot for a call, and one of those under this lower cap, and of the caller's own."""
        slots = self._slots.here()
        async with AsyncExitStack() as held:
            if own is not None:
                await held.enter_async_context(own)
            for count in dict.fromkeys((self.lowered(cap), self.calls)):
                if count is not None:
                    await held.enter_async_context(slots.setdefault(count, asyncio.Semaphore(count)))
            yield

    async def in_thread(self, fn: Callable[..., Result], *args: Any) -> Result:
        """Call a function in a thread; given up when the caller is cancelled; fails if too many of these run."""
        most = max(MOST_LEFT, self.calls or 0)
        if (left := self.left) >= most:
            raise TimeoutError(
                f"{left} calls that ran out of time are still running; from {most} on, further calls fail: give the "
                "client of the model a time limit of its own"
            )
        task = started(_called, fn, *args)
        try:
            result, cancelled = await asyncio.wrap_future(task)
        finally:
            if task.cancel():  # it still runs
                self._left.add(task)
        if cancelled is not None:
            raise cancelled
        return result  # type: ignore[no-any-return]

    async def iterate_in_thread(self, begin: Callable[..., Iterator[Item]], *args: Any) -> AsyncGenerator[Item, None]:
        """Yield what the iterator yields that a function returns, each piece made in a thread."""
        pieces, making, context = _begun(begin, *args), threading.Lock(), copy_context()

        def make() -> Item:
            with making:
                return next(pieces, END)

        def close() -> None:
            with making, suppress(Exception):  # the stream is no longer wanted
                pieces.close()

        try:
            while (piece := await self.in_thread(context.run, make)) is not END:
                yield piece
        finally:
            if making.locked():  # nobody waits for a piece that is being made
                started(close)
            else:
                await in_thread(close)

    async def iterate(self, pieces: AsyncIterator[Item]) -> AsyncGenerator[Item, None]:
        """Iterate within the time limit for the whole; then cancel the iterator."""
        deadline = None if self.timeout is None else time.monotonic() + self.timeout
        late = f"no complete answer within {self.timeout or 0:g} s"
        async with closed_after(pieces):
            while True:
                left = None if deadline is None else max(0.0, deadline - time.monotonic())
                if (piece := await await_within(left, acalled(anext(pieces, END)), late)) is END:
                    return
                yield piece


def _called(fn: Callable[..., Result], *args: Any) -> tuple[Result | Any, futures.CancelledError | None]:
    """Call a model's function; return an error apart that asyncio would take for its own cancellation."""
    try:
        return called(fn, *args), None
    except futures.CancelledError as error:
        return None, error


def _begun(begin: Callable[..., Iterator[Item]], *args: Any) -> Generator[Item, None, None]:
    yield from begin(*args)


async def await_within(seconds: float | None, awaitable: Awaitable[Result], late: str | None = None) -> Result:
    """Await something; cancel it after this many seconds, and raise a TimeoutError with `late` as its message."""
    deadline = float("inf") if seconds is None else time.monotonic() + seconds
    try:
        async with cancelled_after(seconds):
            return await awaitable
    except asyncio.TimeoutError:
        if time.monotonic() < deadline:
            raise  # a time-out of the awaitable's own
    raise TimeoutError(late or f"no answer within {seconds:g} s")


async def retried(
    ask: Callable[[], Awaitable[Result]], attempts: int, worth_retrying: Callable[[BaseException], bool]
) -> Result:
    """Await what a function gives, again after a pause where that may help, in so many tries at most.

    The pause is as long as the server asks, else has full jitter; a server that asks for too long gets no other try.
    """
    tries = 0
    while True:
        tries += 1
        try:
            return await ask()
        except Exception as error:
            if tries >= attempts or not worth_retrying(error):
                raise
            pause = retry_after(error)
            if pause is None:
                pause = _jitter(tries)
            elif not pause <= LONGEST_WAIT:
                raise
        await asyncio.sleep(pause)


def _jitter(tries: int) -> float:
    from tenacity import RetryCallState, wait_random_exponential  # imported by the first call that fails

    state = RetryCallState(cast(Any, None), None, (), {})
    state.attempt_number = min(tries, 64)
    return wait_random_exponential(multiplier=_FIRST_WAIT, max=_LAST_WAIT)(state)
