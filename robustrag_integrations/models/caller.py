"""Calling a model: limits on concurrency and time, and retries.

`ModelCaller` is the only layer between an answer and a client. `call`, `acall`, `stream` and `astream` make one call:

1. wait for a slot (`CallLimits.slot`), and ask within the time limit;
2. where another try may help, pause, and ask again (`client_errors`); else the error is raised.

`ask_all` and `aask_all` make the isolated calls of one answer together. A call that fails is a `Response` with an
error there, and costs its own group alone; calls that are no longer needed are given up.

A model's function that exits has failed like any other (`exits`).
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator, Sequence
from concurrent import futures
from contextlib import aclosing, closing
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from robustrag_integrations._util.redaction import shown_in_one_line
from robustrag_integrations._util.steps import closed_after
from robustrag_integrations.errors import INTERRUPTS
from robustrag_integrations.models.base import Response, Until, not_asked
from robustrag_integrations.models.client_errors import failure_message, is_busy, pause_before_retry
from robustrag_integrations.models.exits import acalled, called
from robustrag_integrations.models.limits import END, CallLimits, Stop
from robustrag_integrations.models.thread_pool import POOL

Result = TypeVar("Result")
Item = TypeVar("Item")

_PATIENCE = 1.0  # seconds for cancelled tasks to end; one that does not is left alone
_SHORTEST_WAVE, _LONGEST_WAVE = 1.0, 30.0  # seconds; then the next wave is sent, though replies are missing


class RetriedCall:
    """The state of one call over its tries.

    Args:
        stop: shared by calls that are made together; None for a call that is always waited for.

    Attributes:
        begun: True if it was sent.
        tries: the number of tries so far.
    """

    def __init__(self, stop: Stop | None = None) -> None:
        self.stop, self.begun, self.tries = stop, False, 0

    def begin(self) -> None:
        """Begin a try.

        Raises:
            CancelledError: its reply is no longer wanted.
        """
        if self.stop is not None and self.stop.told.is_set():
            raise futures.CancelledError
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

    def call(self, ask: Callable[[], Result], call: RetriedCall | None = None, cap: int | None = None) -> Result:
        """Make a call.

        Args:
            ask: asks the model.
            call: its state, where several are made together.
            cap: a lower limit on calls under way.
        """
        call = call or RetriedCall()
        while True:
            try:
                with self.limits.slot(cap):
                    call.begin()
                    if self.limits.timeout is None and (call.stop is None or not call.stop.gives_up):
                        return called(ask)
                    return self.limits.run(ask, stop=call.stop)
            except Exception as error:
                failed = error
            self._go_on(call, failed)

    async def acall(
        self, ask: Callable[[], Awaitable[Result]], call: RetriedCall | None = None, *, cap: int | None = None
    ) -> Result:
        """`call` in an event loop."""
        call = call or RetriedCall()
        while True:
            try:
                async with self.limits.aslot(cap):
                    call.begin()
                    return await self.limits.within(acalled(ask()))
            except Exception as error:
                failed = error
            await self._ago_on(call, failed)

    def stream(self, ask: Callable[[], Iterator[Item]], *, cap: int | None = None) -> Iterator[Item]:
        """`call` for a stream, which holds its slot and is retried only until its first piece."""
        call = RetriedCall()
        while True:
            try:
                with self.limits.slot(cap):
                    call.begin()
                    pieces = self.limits.iterate(_pieces(ask))
                    first = next(pieces, END)
                break
            except Exception as error:
                failed = error
            self._go_on(call, failed)
        with closing(pieces):
            if first is not END:
                yield first
                yield from pieces

    async def astream(
        self, ask: Callable[[], AsyncIterator[Item]], *, cap: int | None = None
    ) -> AsyncGenerator[Item, None]:
        """`stream` in an event loop."""
        call = RetriedCall()
        while True:
            try:
                async with self.limits.aslot(cap):
                    call.begin()
                    pieces = self.limits.aiterate(_apieces(ask))
                    first = await anext(pieces, END)
                break
            except Exception as error:
                failed = error
            await self._ago_on(call, failed)
        async with aclosing(pieces):
            if first is not END:
                yield first
                async for piece in pieces:
                    yield piece

    def ask_all(
        self,
        ask: Callable[[Item], Response],
        items: Sequence[Item],
        shown: Callable[[BaseException], Exception],
        until: Until | None = None,
        *,
        cap: int | None = None,
    ) -> list[Response]:
        """Make several calls concurrently.

        Args:
            ask: asks about one item.
            items: one for each call.
            shown: from an error to the one to show, without credentials; raises it if it is not a call's failure.
            until: the rule by which replies so far are enough: the other calls are given up, or not made. None: all are
                waited for.
            cap: a lower limit on calls under way.
        """
        stop = Stop(gives_up=until is not None)
        calls = [RetriedCall(stop) for _ in items]
        waves, workers = Waves(len(items), until), self.limits.lowered(cap)
        replies: list[Response | None] = [None] * len(items)
        due: deque[int] = deque()
        under_way: dict[futures.Future[Response], int] = {}
        try:
            while True:
                due.extend(waves.due(waiting=bool(under_way or due)))
                while due and len(under_way) < workers:
                    index = due.popleft()
                    under_way[POOL.submit(self.call, partial(ask, items[index]), calls[index], cap)] = index
                if not under_way:
                    break
                done, _ = futures.wait(under_way, waves.patience(), futures.FIRST_COMPLETED)
                for task in done:
                    index, error = under_way.pop(task), task.exception()
                    replies[index] = task.result() if error is None else _failed(error, shown, calls[index])
                    waves.heard()
                if until and done and None in replies and until.enough(_heard(replies, calls)):
                    break
            return _heard(replies, calls)
        finally:
            stop.tell()

    async def aask_all(
        self,
        ask: Callable[[Item], Awaitable[Response]],
        items: Sequence[Item],
        shown: Callable[[BaseException], Exception],
        until: Until | None = None,
        *,
        cap: int | None = None,
    ) -> list[Response]:
        """`ask_all` in an event loop; calls that are not waited for are cancelled."""
        calls = [RetriedCall() for _ in items]
        waves, replies = Waves(len(items), until), list[Response | None]([None] * len(items))

        async def respond(index: int) -> None:
            call = calls[index]
            try:
                replies[index] = await self.acall(partial(ask, items[index]), call, cap=cap)
            except asyncio.CancelledError:
                if given_up:
                    raise
                # Cancelled by another user of a shared request, such as a cache: this call alone has failed.
                replies[index] = Response(None, error="the call was cancelled, though its reply was waited for")
            except BaseException as error:
                replies[index] = _failed(error, shown, call)

        given_up = False
        waiting: set[asyncio.Task[None]] = set()
        try:
            while waves.left or waiting:
                waiting |= {asyncio.ensure_future(respond(i)) for i in waves.due(waiting=bool(waiting))}
                ends = asyncio.FIRST_COMPLETED if until else asyncio.FIRST_EXCEPTION  # without a rule, all are needed
                done, waiting = await asyncio.wait(waiting, timeout=waves.patience(), return_when=ends)
                for task in done:
                    _seen(task)
                for task in done:
                    if not task.cancelled():
                        task.result()
                    waves.heard()
                if until and done and None in replies and await asyncio.to_thread(until.enough, _heard(replies, calls)):
                    break
            return _heard(replies, calls)
        finally:
            given_up = True
            await _cancelled(waiting)

    def _go_on(self, call: RetriedCall, error: Exception) -> None:
        """Pause and return if the call is to be retried; raise its error where a retry would not help."""
        pause = self._pause(error, call)
        if call.stop is None:
            time.sleep(pause)
        elif call.stop.told.wait(pause):
            raise error

    async def _ago_on(self, call: RetriedCall, error: Exception) -> None:
        """`_go_on` in an event loop."""
        await asyncio.sleep(self._pause(error, call))

    def _pause(self, error: Exception, call: RetriedCall) -> float:
        if call.tries < self.attempts and self.worth_retrying(error):
            pause = pause_before_retry(error, call.tries, self.wait, self.max_wait)
            if pause is not None:
                return pause
        raise error


def _pieces(ask: Callable[[], Iterator[Item]]) -> Iterator[Item]:
    """Yield what a model's function yields; closing this closes it."""
    pieces = called(ask)
    try:
        while (piece := called(next, pieces, END)) is not END:
            yield piece
    finally:
        getattr(pieces, "close", lambda: None)()


async def _apieces(ask: Callable[[], AsyncIterator[Item]]) -> AsyncGenerator[Item, None]:
    """`_pieces` in an event loop."""
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

    @property
    def left(self) -> bool:
        """True if some calls have not been made."""
        return bool(self._left)

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
