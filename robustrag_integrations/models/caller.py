"""Calling a model: limits on concurrency and time, and retries.

`ModelCaller` is the only layer between an answer and a client. `call` and `stream` make one call:

1. wait for a slot (`CallLimits.slot`), and ask within the time limit;
2. where another try may help, pause, and ask again (`client_errors`); else the error is raised.

`ask_all` makes the isolated calls of one answer together. A call that fails is a `Response` with an error there, and
costs its own group alone; calls that are no longer needed are given up. All of it is asynchronous: synchronous
functions run in threads (`CallLimits.in_thread`), and synchronous callers use a loop in the background (`event_loops`).

A model's function that exits has failed like any other (`threads`).
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from robustrag_integrations._util.redaction import shown_in_one_line
from robustrag_integrations._util.steps import closed_after
from robustrag_integrations.errors import INTERRUPTS
from robustrag_integrations.models.base import Response, Until, not_asked
from robustrag_integrations.models.client_errors import failure_message, is_busy, pause_before_retry
from robustrag_integrations.models.limits import END, CallLimits
from robustrag_integrations.models.threads import acalled, called, in_thread

Result = TypeVar("Result")
Item = TypeVar("Item")

_PATIENCE = 1.0  # seconds for cancelled tasks to end; one that does not is left alone
_SHORTEST_WAVE, _LONGEST_WAVE = 1.0, 30.0  # seconds; then the next wave is sent, though replies are missing


class RetriedCall:
    """The state of one call over its tries.

    Attributes:
        begun: True if it was sent.
        tries: the number of tries so far.
        stopped: True once its reply is no longer wanted.
    """

    def __init__(self) -> None:
        self.begun, self.tries, self.stopped = False, 0, False

    def begin(self) -> None:
        """Begin a try.

        Raises:
            CancelledError: its reply is no longer wanted.
        """
        if self.stopped:
            raise asyncio.CancelledError
        self.begun = True
        self.tries += 1


@dataclass(frozen=True)
class ModelCaller:
    """Makes the calls of one client.

    Attributes:
        limits: the most calls under way, and their time; shared by all who call the client.
        attempts: tries in all.
        worth_retrying: a function that is True if another try may help after an error.
        wait: the longest wait before the second try, in seconds; doubled each time, up to `max_wait`.
        max_wait: the longest wait before any try. A server's own Retry-After takes precedence.
    """

    limits: CallLimits
    attempts: int = 3
    worth_retrying: Callable[[BaseException], bool] = is_busy
    wait: float = 0.5
    max_wait: float = 20.0

    async def call(
        self, ask: Callable[[], Awaitable[Result]], call: RetriedCall | None = None, *, cap: int | None = None
    ) -> Result:
        """Make a call.

        Args:
            ask: asks the model.
            call: its state, where several are made together.
            cap: a lower limit on calls under way.
        """
        call = call or RetriedCall()
        while True:
            try:
                async with self.limits.slot(cap):
                    call.begin()
                    return await self.limits.within(acalled(ask()))
            except Exception as error:
                failed = error
            await self._pause(failed, call)

    async def stream(
        self, ask: Callable[[], AsyncIterator[Item]], *, cap: int | None = None
    ) -> AsyncGenerator[Item, None]:
        """`call` for a stream, which holds its slot and is retried only until its first piece."""
        call = RetriedCall()
        while True:
            try:
                async with self.limits.slot(cap):
                    call.begin()
                    pieces = self.limits.iterate(_pieces(ask))
                    first = await anext(pieces, END)
                break
            except Exception as error:
                failed = error
            await self._pause(failed, call)
        async with aclosing(pieces):
            if first is not END:
                yield first
                async for piece in pieces:
                    yield piece

    async def ask_all(
        self,
        ask: Callable[[Item], Awaitable[Response]],
        items: Sequence[Item],
        shown: Callable[[BaseException], Exception],
        until: Until | None = None,
        *,
        cap: int | None = None,
    ) -> list[Response]:
        """Make several calls concurrently; those that are not waited for are cancelled.

        Args:
            ask: asks about one item.
            items: one for each call.
            shown: from an error to the one to show, without credentials; raises it if it is not a call's failure.
            until: the rule by which replies so far are enough: the other calls are given up, or not made. None: all are
                waited for.
            cap: a lower limit on calls under way.
        """
        calls = [RetriedCall() for _ in items]
        waves, replies = Waves(len(items), until), list[Response | None]([None] * len(items))
        interrupts: list[BaseException] = []

        async def respond(index: int) -> None:
            call = calls[index]
            try:
                replies[index] = await self.call(partial(ask, items[index]), call, cap=cap)
            except asyncio.CancelledError:
                if call.stopped:
                    raise
                # Cancelled by another user of a shared request, such as a cache: this call alone has failed.
                replies[index] = Response(None, error="the call was cancelled, though its reply was waited for")
            except (KeyboardInterrupt, SystemExit) as error:  # which would end the event loop
                interrupts.append(error)
                stop()
                raise RuntimeError("interrupted") from error
            except BaseException as error:
                replies[index] = _failed(error, shown, call)

        def stop() -> None:
            for call in calls:
                call.stopped = True

        due: deque[int] = deque()
        waiting: set[asyncio.Task[None]] = set()
        at_once = self.limits.lowered(cap) if until else len(items)  # the rule is asked before each further call
        ends = asyncio.FIRST_COMPLETED if until else asyncio.FIRST_EXCEPTION  # without one, all are needed
        try:
            while True:
                due.extend(waves.due(waiting=bool(waiting or due)))
                while due and len(waiting) < at_once:
                    waiting.add(asyncio.ensure_future(respond(due.popleft())))
                if not waiting:
                    break
                done, waiting = await asyncio.wait(waiting, timeout=waves.patience(), return_when=ends)
                for task in done:
                    _seen(task)
                if interrupts:
                    raise interrupts[0]
                for task in done:
                    if not task.cancelled():
                        task.result()
                    waves.heard()
                if until and done and None in replies and await in_thread(until.enough, _heard(replies, calls)):
                    break
            return _heard(replies, calls)
        finally:
            stop()
            await _cancelled(waiting)

    async def _pause(self, error: Exception, call: RetriedCall) -> None:
        """Pause and return if the call is to be retried; raise its error where a retry would not help."""
        pause = None
        if call.tries < self.attempts and self.worth_retrying(error):
            pause = pause_before_retry(error, call.tries, self.wait, self.max_wait)
        if pause is None:
            raise error
        await asyncio.sleep(pause)


async def _pieces(ask: Callable[[], AsyncIterator[Item]]) -> AsyncGenerator[Item, None]:
    """Yield what a model's function yields; closing this closes it."""
    async with closed_after(called(ask)) as pieces:
        while (piece := await acalled(anext(pieces, END))) is not END:
            yield piece


class Waves:
    """The schedule of waves: each is sent once the replies to the one before are in, or overdue.

    A few slow calls must not hold up the next wave, whatever they are waiting for: it is sent after three times as long
    as the fastest reply took.
    """

    def __init__(self, count: int, until: Until | None) -> None:
        self._left = (until or Until(lambda _: False)).waves(count)
        self._count = count
        self._began = 0.0
        self._fastest: float | None = None

    def heard(self) -> None:
        """Record that a reply is in."""
        if self._fastest is None:
            self._fastest = time.monotonic() - self._began

    def patience(self) -> float | None:
        """Return the seconds to wait for the next reply; None: no limit."""
        if not self._left:
            return None
        longest = _LONGEST_WAVE if self._fastest is None else max(_SHORTEST_WAVE, 3 * self._fastest)
        return max(0.0, self._began + longest - time.monotonic())

    def due(self, *, waiting: bool) -> range:
        """Return the calls to make now."""
        if not self._left or (waiting and self.patience()):
            return range(0)
        self._began, self._fastest = time.monotonic(), None
        return range(self._count)[self._left.pop(0)]


def _failed(error: BaseException, shown: Callable[[BaseException], Exception], call: RetriedCall) -> Response:
    """Return the reply of a failed call; raise what is not a failure."""
    if isinstance(error, INTERRUPTS):
        raise error
    cause = shown(error)
    words = shown_in_one_line(error, cause)
    return Response(None, error=failure_message(error, words, call.tries), cause=cause)


def _heard(replies: list[Response | None], calls: list[RetriedCall]) -> list[Response]:
    """Return the replies so far, with placeholders for the other calls."""
    return [
        not_asked(cancelled=call.begun) if reply is None else reply for reply, call in zip(replies, calls, strict=True)
    ]


async def _cancelled(tasks: set[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.add_done_callback(_seen)
        task.cancel()
    if tasks:
        await asyncio.wait(tasks, timeout=_PATIENCE)


def _seen(task: asyncio.Task[None]) -> None:
    """Retrieve an abandoned task's error, so that asyncio does not report it."""
    if not task.cancelled():
        task.exception()
