"""Many calls at once, which end when all replies are in, or as soon as those that are in are enough."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from contextvars import copy_context
from functools import partial
from typing import cast

from robustrag_integrations.models.base import Response, Until, not_asked
from robustrag_integrations.models.crew import CREW

_PATIENCE = 1.0  # seconds for cancelled tasks to end; one that does not is left alone
_SHORTEST_WAVE, _LONGEST_WAVE = 1.0, 30.0  # seconds after which the next wave goes out, though some are missing


class Turn:
    """One call of several.

    Args:
        stopped: set when nobody waits for the calls any more.
        given_up: done at the same time; None where calls are waited for in any case.
    """

    def __init__(self, stopped: threading.Event, given_up: Future[None] | None) -> None:
        self.stopped, self.given_up = stopped, given_up
        self.begun = False

    def begin(self) -> None:
        """The call goes out now.

        Raises:
            CancelledError: nobody waits for it any more.
        """
        if self.stopped.is_set():
            raise CancelledError
        self.begun = True


class _Waves:
    """When which calls go out: a wave once the one before is in, or keeps everybody waiting.

    A few slow calls must not hold up the next wave, whatever they are waiting for: it goes out when three times as long
    has passed as the fastest reply took.
    """

    def __init__(self, count: int, until: Until | None) -> None:
        until = until or Until(lambda _: False)
        self._left = until.waves(count)
        self._ends = None if until.patience is None else time.monotonic() + until.patience
        self._count = count
        self._began = 0.0
        self._fastest: float | None = None

    @property
    def left(self) -> bool:
        """Whether there are calls that have not gone out."""
        return bool(self._left)

    @property
    def over(self) -> bool:
        """Whether nothing is waited for any more."""
        return self._ends is not None and time.monotonic() >= self._ends

    def heard(self) -> None:
        """A reply is in."""
        if self._fastest is None:
            self._fastest = time.monotonic() - self._began

    def patience(self) -> float | None:
        """How many seconds to wait for the next reply; None: until it is there."""
        ends = [] if self._ends is None else [self._ends]
        if self._left:
            longest = _LONGEST_WAVE if self._fastest is None else max(_SHORTEST_WAVE, 3 * self._fastest)
            ends.append(self._began + longest)
        return max(0.0, min(ends) - time.monotonic()) if ends else None

    def due(self, *, waiting: bool) -> range:
        """The calls that go out now."""
        if not self._left or (waiting and self.patience()):
            return range(0)
        self._began, self._fastest = time.monotonic(), None
        return range(self._count)[self._left.pop(0)]


def gather(
    ask: Callable[[int, Turn], Response], count: int, workers: int, until: Until | None = None
) -> list[Response]:
    """Make calls at the same time.

    Without `until` this thread makes calls, too, and threads join it one after another while calls are left: those of a
    model that answers at once are all made here, and those of one that waits go out together.

    Args:
        ask: makes the call of this number, and says `Turn.begin` when it goes out.
        count: how many calls there are.
        workers: how many may be under way.
        until: when the replies that are in are enough: the other calls are then given up (`Turn.given_up`), or not
            made. None: all are waited for.
    """
    if until is None and count == 1 and not _in_event_loop():  # nobody is to join
        return [copy_context().run(ask, 0, Turn(threading.Event(), None))]
    if until is None:
        return _Together(ask, count).replies(workers)
    stopped, given_up = threading.Event(), Future[None]()
    waves, turns = _Waves(count, until), [Turn(stopped, given_up) for _ in range(count)]
    pool = ThreadPoolExecutor(min(count, workers) or 1, thread_name_prefix="robustrag")
    calls: list[Future[Response]] = []
    waiting: set[Future[Response]] = set()
    try:
        while waves.left or waiting:
            out = [pool.submit(copy_context().run, ask, i, turns[i]) for i in waves.due(waiting=bool(waiting))]
            calls += out
            done, waiting = wait(waiting.union(out), waves.patience(), FIRST_COMPLETED)
            for call in done:
                call.result()
                waves.heard()
            if waves.over or (done and (waves.left or waiting) and until.enough(_heard(calls, turns))):
                break
        return _heard(calls, turns)
    finally:
        stopped.set()
        given_up.set_result(None)
        pool.shutdown(wait=False, cancel_futures=True)


class _Together:
    """Calls that are all waited for, made by whichever thread is free.

    Args:
        ask: makes the call of this number.
        count: how many calls there are.
    """

    def __init__(self, ask: Callable[[int, Turn], Response], count: int) -> None:
        self._ask, self._context = ask, copy_context()
        self._lock = threading.Lock()
        self._next, self._running = 0, 0
        self._stopped, self._over = threading.Event(), threading.Event()
        self._replies: list[Response | None] = [None] * count
        self._failed: BaseException | None = None

    def replies(self, workers: int) -> list[Response]:
        """All replies, in order; up to `workers` are waited for at a time."""
        try:
            if _in_event_loop():  # a function that runs a loop of its own cannot do so in this thread
                CREW.send(partial(self._work, workers))
            else:
                self._work(workers)
            with self._lock:
                all_in = self._all_in()
            if not all_in:
                self._over.wait()
        finally:
            self._stopped.set()
        if self._failed is not None:
            raise self._failed
        return cast("list[Response]", self._replies)

    def _work(self, workers: int) -> None:
        """Make calls as long as there are some; before the first one, have another thread join, which brings the next.

        Where no thread can be started, those that there are do all of it.
        """
        place = self._next_place(0)
        while place is not None:
            if workers > 1 and self._next < len(self._replies):
                with suppress(RuntimeError):
                    CREW.send(partial(self._work, workers - 1))
            workers = 1
            try:
                turn = Turn(self._stopped, None)
                self._replies[place] = self._context.copy().run(self._ask, place, turn)
            except BaseException as error:
                self._failed = error
            place = self._next_place(1)

    def _next_place(self, done: int) -> int | None:
        """The call that this thread makes next, after so many of its own; None where none is left or wanted."""
        with self._lock:
            self._running -= done
            if self._failed is None and self._next < len(self._replies) and not self._stopped.is_set():
                self._next, self._running = self._next + 1, self._running + 1
                return self._next - 1
            if self._all_in():
                self._over.set()
            return None

    def _all_in(self) -> bool:
        """Whether nobody makes a call any more; asked with the lock held."""
        return self._failed is not None or (self._next == len(self._replies) and not self._running)


def _in_event_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


async def agather(
    ask: Callable[[int, Turn], Awaitable[Response]], count: int, until: Until | None = None
) -> list[Response]:
    """`gather` in an event loop, all calls of a wave at once; those that are not waited for are cancelled."""
    stopped = threading.Event()  # is never set: calls that nobody waits for are cancelled
    waves, turns = _Waves(count, until), [Turn(stopped, None) for _ in range(count)]
    calls: list[asyncio.Future[Response]] = []
    waiting: set[asyncio.Future[Response]] = set()
    try:
        while waves.left or waiting:
            out = [asyncio.ensure_future(ask(i, turns[i])) for i in waves.due(waiting=bool(waiting))]
            calls += out
            ends = asyncio.FIRST_COMPLETED if until else asyncio.FIRST_EXCEPTION  # nobody looks before all are in
            done, waiting = await asyncio.wait(waiting.union(out), timeout=waves.patience(), return_when=ends)
            for call in done:
                _result(call)
                waves.heard()
            if waves.over:
                break
            if done and until and (waves.left or waiting):
                heard = _heard(calls, turns)
                if await asyncio.to_thread(until.enough, heard):
                    break
        return _heard(calls, turns)
    finally:
        await _cancelled([call for call in calls if not call.done()])


def _heard(calls: Sequence[Future[Response] | asyncio.Future[Response]], turns: Sequence[Turn]) -> list[Response]:
    """The replies that are in, and what became of the other calls."""
    return [
        _result(calls[i]) if i < len(calls) and calls[i].done() else not_asked(cancelled=turn.begun)
        for i, turn in enumerate(turns)
    ]


def _result(call: Future[Response] | asyncio.Future[Response]) -> Response:
    """What a call came to that nobody here has given up."""
    if call.cancelled():  # by whoever shares it, such as a cache of requests: that is this call's failure alone
        return Response(None, error="the call was cancelled, though its reply was waited for")
    return call.result()


async def _cancelled(calls: Sequence[asyncio.Future[Response]]) -> None:
    for call in calls:
        call.add_done_callback(_seen)
        call.cancel()
    if calls:
        await asyncio.wait(calls, timeout=_PATIENCE)


def _seen(call: asyncio.Future[Response]) -> None:
    """What a call that nobody waits for ended in is no news."""
    if not call.cancelled():
        call.exception()
