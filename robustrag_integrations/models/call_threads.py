"""How the calls of one client are made: how many at a time, and in threads that can be given up.

A synchronous call that may be given up runs in a thread of its own, which nothing can stop from outside.

A call that is given up is hung up on: the connection that its thread reads from is shut down, so that a download ends
and its memory is given back, and the client sees a connection that broke off. Where that does not help (the function
computes, sleeps, or shares one HTTP/2 connection with other calls) the thread ends when the function returns. How many
such threads there may be is bounded.
"""

from __future__ import annotations

import asyncio
import gc
import queue
import socket
import sys
import threading
import time
from collections.abc import AsyncGenerator, Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, wait
from contextlib import suppress
from contextvars import copy_context
from types import FrameType
from typing import Any, TypeVar

from robustrag_integrations.forks import lock_held_over_forks, renew_in_children
from robustrag_integrations.models.per_loop import PerLoop
from robustrag_integrations.models.slots import Slots
from robustrag_integrations.models.time_limits import END, finishes_within

Result = TypeVar("Result")
Item = TypeVar("Item")

MOST_LEFT = 32  # threads of calls that were given up, unless more calls may be under way at a time
_AHEAD = 256  # pieces of a stream that wait for a reader who takes his time
_FIRST_PAUSE, _LONGEST_PAUSE = 0.01, 0.5  # seconds between two attempts to hang up
_CLIENTS = frozenset({"socket", "ssl", "http", "urllib3", "httpcore"})  # packages that read from connections
_DEEPEST = 200  # frames of a thread that are looked at
_LOOKING = lock_held_over_forks()  # by whoever looks where threads are, and has the collector off meanwhile


class CallThreads:
    """The threads of one client's calls, and its slots.

    Args:
        calls: how many calls may be under way at a time. As many that were given up, and at least 32, may still run;
            with more than that, further calls fail at once.

    Attributes:
        slots: held by calls that threads make.
        loop_slots: held by calls that an event loop makes; each loop has as many.
    """

    def __init__(self, calls: int = 1) -> None:
        self._calls = calls
        self.slots = Slots(calls)
        self.loop_slots = PerLoop(lambda: asyncio.Semaphore(calls))
        self.most_left = max(MOST_LEFT, calls)
        renew_in_children(self, CallThreads._renew_slots)
        self._lock = lock_held_over_forks()
        self._left: set[threading.Thread] = set()
        self._hanging_up: threading.Thread | None = None

    @property
    def left(self) -> int:
        """How many calls were given up and still run."""
        with self._lock:
            self._left = {thread for thread in self._left if thread.is_alive()}
            return len(self._left)

    def call(
        self, timeout: float | None, fn: Callable[..., Result], *args: Any, given_up: Future[None] | None = None
    ) -> Result:
        """Call a function, and give it up after `timeout` seconds or once `given_up` is done.

        With neither, it is called in this thread.

        Raises:
            TimeoutError: the time is over, or too many calls that were given up still run.
            CancelledError: the call was given up before its time was over.
        """
        if timeout is None and given_up is None:
            return fn(*args)
        done: Future[Result] = Future()
        thread = self._start(_call, done, fn, args)
        ends: list[Future[Any]] = [done] if given_up is None else [done, given_up]
        wait(ends, timeout, FIRST_COMPLETED)
        if done.done():
            return done.result()
        self._give_up(thread)
        if given_up is not None and given_up.done():
            raise CancelledError
        raise TimeoutError(f"no answer within {timeout:g} s")

    async def acall(self, timeout: float | None, fn: Callable[..., Result], *args: Any) -> Result:
        """`call` without blocking the event loop; the call is given up when the caller is cancelled, too."""
        done: Future[Result] = Future()
        thread = self._start(_call, done, fn, args)
        waiting = asyncio.wrap_future(done)
        try:
            if not await finishes_within(timeout, waiting):
                raise TimeoutError(f"no answer within {timeout:g} s")
            return waiting.result()
        finally:
            if not done.done() or done.cancelled():
                self._give_up(thread)

    def stream(self, timeout: float | None, pieces: Iterator[Item]) -> Iterator[Item]:
        """What an iterator gives, all of it within `timeout` seconds; without a limit it runs in this thread.

        Raises:
            TimeoutError: the time is over, or too many calls that were given up still run.
        """
        if timeout is None:
            yield from pieces
            return
        deadline = time.monotonic() + timeout
        feed = _Feed(pieces)
        thread = self._start(feed.run)
        try:
            while True:
                try:
                    piece = feed.next_piece(max(0.0, deadline - time.monotonic()))
                except queue.Empty:
                    raise TimeoutError(f"no complete answer within {timeout:g} s") from None
                if piece is END:
                    return
                yield piece
        finally:
            self._abandon(feed, thread)

    async def astream(self, timeout: float | None, pieces: Iterator[Item]) -> AsyncGenerator[Item, None]:
        """`stream` without blocking the event loop; the iterator runs in a thread in any case."""
        deadline = None if timeout is None else time.monotonic() + timeout
        loop = asyncio.get_running_loop()
        there = asyncio.Event()
        feed = _Feed(pieces, lambda: loop.call_soon_threadsafe(there.set))
        thread = self._start(feed.run)
        try:
            while True:
                there.clear()
                try:
                    piece = feed.next_piece(None)
                except queue.Empty:
                    left = None if deadline is None else max(0.0, deadline - time.monotonic())
                    if not await finishes_within(left, asyncio.ensure_future(there.wait())):
                        raise TimeoutError(f"no complete answer within {timeout:g} s") from None
                    continue
                if piece is END:
                    return
                yield piece
        finally:
            self._abandon(feed, thread)

    def _renew_slots(self) -> None:
        """Free the slots that the parent process's threads had taken when it forked."""
        self.slots = Slots(self._calls)

    def _start(self, target: Callable[..., None], *args: Any) -> threading.Thread:
        if (left := self.left) >= self.most_left:
            raise TimeoutError(
                f"{left} calls that ran out of time are still running, and no more than {self.most_left} may: give the "
                "client of the model a time limit of its own"
            )
        context = copy_context()
        thread = threading.Thread(target=context.run, args=(target, *args), name="robustrag-call", daemon=True)
        thread.start()
        return thread

    def _abandon(self, feed: _Feed, thread: threading.Thread) -> None:
        feed.abandoned.set()
        if not feed.finished.is_set():
            self._give_up(thread)

    def _give_up(self, thread: threading.Thread) -> None:
        with self._lock:
            self._left.add(thread)
            if self._hanging_up is None or not self._hanging_up.is_alive():
                self._hanging_up = threading.Thread(target=self._hang_up, name="robustrag-hang-up", daemon=True)
                self._hanging_up.start()

    def _hang_up(self) -> None:
        """Hang up on calls that were given up for as long as there are any: a client may well connect again."""
        pause = _FIRST_PAUSE
        while True:
            with self._lock:
                if not self.left:
                    self._hanging_up = None
                    return
                left = tuple(self._left)
            for thread in left:
                with suppress(Exception):  # in its frames there may be anything
                    hang_up(thread)
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)


class _Feed:
    """Pieces of a stream on their way from the thread that makes them; not many wait."""

    def __init__(self, pieces: Iterator[Any], notify: Callable[[], Any] | None = None) -> None:
        self._pieces, self._notify = pieces, notify
        self._waiting: queue.Queue[tuple[Any, BaseException | None]] = queue.Queue(_AHEAD)
        self.abandoned = threading.Event()
        self.finished = threading.Event()

    def next_piece(self, patience: float | None) -> Any:
        """The next piece, `END` after the last one, or the error that the iterator ended in.

        Raises:
            queue.Empty: there is none after `patience` seconds; None: there is none now.
        """
        piece, error = self._waiting.get_nowait() if patience is None else self._waiting.get(timeout=patience)
        if error is not None:
            raise error
        return piece

    def run(self) -> None:
        try:
            for piece in self._pieces:
                if not self._pass_on(piece, None):
                    break
            self._pass_on(END, None)
        except BaseException as error:
            self._pass_on(END, error)
        finally:
            close = getattr(self._pieces, "close", None)
            if close is not None:
                with suppress(Exception):  # its reader is gone
                    close()
            self.finished.set()

    def _pass_on(self, piece: Any, error: BaseException | None) -> bool:
        while not self.abandoned.is_set():
            try:
                self._waiting.put((piece, error), timeout=0.1)
            except queue.Full:
                continue
            if self._notify is not None:
                with suppress(RuntimeError):  # the loop is closed
                    self._notify()
            return True
        return False


def _call(done: Future[Any], fn: Callable[..., Any], args: tuple[Any, ...]) -> None:
    if not done.set_running_or_notify_cancel():
        return
    try:
        done.set_result(fn(*args))
    except StopIteration as error:  # no future can hold one
        done.set_exception(RuntimeError(f"the function raised StopIteration {error}"))
    except BaseException as error:
        done.set_exception(error)


def hang_up(thread: threading.Thread) -> None:
    """Shut down the connection that a thread is reading from; nothing if it reads from none, or shares it.

    The socket is found in the thread's frames: in what reads from it (`socket`, `ssl`, or whatever is running), or in
    the connection around that (`http.client`, urllib3, httpcore). Sockets of other objects that the thread uses are
    left alone: they may belong to a cache or a database. While this function looks, the thread can do nothing else.
    """
    frame = _frame_of(thread)
    found: socket.socket | None = None
    for depth in range(_DEEPEST):
        if frame is None:
            break
        owner = frame.f_locals.get("self")
        if "HTTP2" in type(owner).__name__:
            return  # other calls have their answers on the same connection
        if _is_of_client(frame):
            found = found or _socket_of(owner, *_parts_of(owner))
        elif depth == 0:
            found = _socket_of(owner)
        frame = frame.f_back
    if found is not None:
        with suppress(OSError):  # it was closed by now
            socket.socket.shutdown(found, socket.SHUT_RDWR)


def _frame_of(thread: threading.Thread) -> FrameType | None:
    """Where a thread is.

    Before Python 3.12 the collector may run in the middle of `sys._current_frames` and wait for a lock that is held
    there, for ever and with all other threads. So it is off for that moment.
    """
    with _LOOKING:
        collecting = gc.isenabled()
        gc.disable()
        try:
            return sys._current_frames().get(thread.ident or 0)
        finally:
            if collecting:
                gc.enable()


def _is_of_client(frame: FrameType) -> bool:
    return str(frame.f_globals.get("__name__")).partition(".")[0] in _CLIENTS


def _parts_of(owner: Any) -> tuple[Any, ...]:
    return tuple(getattr(owner, "__dict__", {}).values())


def _socket_of(*owners: Any) -> socket.socket | None:
    """The first connection that these are, or hold."""
    for owner in owners:
        for one in (owner, getattr(owner, "__dict__", {}).get("_sock")):
            if isinstance(one, socket.socket) and one.type == socket.SOCK_STREAM and one.fileno() >= 0:
                return one
    return None
