"""Where calls run: functions in daemon threads, coroutines of synchronous callers in an event loop in the background.

`concurrent.futures` and anyio wait for their threads when the interpreter ends, so that one call that hangs would keep
the process alive for ever. Exits of a model's function (`sys.exit` in a client) are failures of its call alone.
"""

from __future__ import annotations

import asyncio
import os
import queue
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Iterator
from concurrent.futures import CancelledError, Future
from contextvars import copy_context
from typing import Any, Generic, TypeVar

from robustrag_integrations._util.errors import ModelError
from robustrag_integrations._util.redaction import in_one_line

Result = TypeVar("Result")
Item = TypeVar("Item")
Made = TypeVar("Made")

END: Any = object()  # comes after the last piece of a stream
_IDLE = 10.0  # seconds after which a thread without a function ends


class Task(Future[Result]):
    """A function's future result. Cancelling it drops the result; the function goes on until it has `ended`."""

    ended = False


class Threads:
    """Daemon threads that call functions, one after another; one that is idle ends after a while."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Start others from now on: a child process made by `fork` has none of its parent's threads."""
        self._waiting: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._idle = threading.Semaphore(0)  # threads that wait, less the functions handed to them

    def call(self, work: Callable[[], None] | None) -> None:
        """Call a function in a thread that is idle, or in a new one; None ends one that is idle."""
        if self._idle.acquire(blocking=False):
            self._waiting.put(work)
        elif work is not None:
            threading.Thread(target=self._serve, args=(work,), name="robustrag", daemon=True).start()

    def _serve(self, work: Callable[[], None] | None) -> None:
        while work is not None:
            work()
            work = None  # nothing of a call is held while the thread waits
            self._idle.release()
            try:
                work = self._waiting.get(timeout=_IDLE)
            except queue.Empty:
                if not self._idle.acquire(blocking=False):
                    work = self._waiting.get()  # a function was just handed to this thread


THREADS = Threads()
"""The threads of this process; they hold nothing of a single model or answer."""


def started(fn: Callable[..., Result], *args: Any) -> Task[Result]:
    """Call a function in a daemon thread, which calls nothing else meanwhile, in a copy of this context."""
    task, context = Task[Result](), copy_context()

    def work() -> None:
        result: Any = None
        failure: BaseException | None = None
        try:
            result = context.run(fn, *args)
        except StopIteration as error:  # which no asynchronous future can hold
            failure = RuntimeError(f"the function raised StopIteration {error}")
        except BaseException as error:
            failure = error
        task.ended = True
        if task.set_running_or_notify_cancel():
            task.set_exception(failure) if failure else task.set_result(result)

    THREADS.call(work)
    return task


async def in_thread(fn: Callable[..., Result], *args: Any) -> Result:
    """Call a function in a daemon thread, without blocking the event loop."""
    return await asyncio.wrap_future(started(fn, *args))


def called(fn: Callable[..., Result], *args: Any) -> Result:
    """Call a model's function; SystemExit and GeneratorExit become a ModelError."""
    try:
        return fn(*args)
    except (SystemExit, GeneratorExit) as error:
        raise ModelError(f"the model's function raised {in_one_line(error)}") from error


async def acalled(reply: Awaitable[Result]) -> Result:
    """`called` for what a coroutine function returns."""
    task = asyncio.current_task()
    try:
        return await reply
    except (SystemExit, GeneratorExit) as error:
        if isinstance(error, GeneratorExit) and (_running_loop() is None or asyncio.current_task() is not task):
            raise  # this coroutine is closed from outside
        raise ModelError(f"the model's function raised {in_one_line(error)}") from error


class LoopThread:
    """An event loop in a daemon thread, for synchronous callers; starts when it is first needed."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Start another one on the next call: a child process made by `fork` has none of its parent's threads."""
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None

    def run(self, coroutine: Coroutine[Any, Any, Result]) -> Result:
        """Run a coroutine to its end; an interrupt while waiting cancels it."""
        loop = self._started()
        if _running_loop() is loop:  # which cannot wait for itself
            made: Result = started(asyncio.run, coroutine).result()
            return made
        future = asyncio.run_coroutine_threadsafe(_settled(coroutine), loop)
        try:
            result, interrupt = future.result()
        except BaseException:
            future.cancel()
            raise
        if interrupt is not None:
            raise interrupt
        return result

    def iterate(self, pieces: AsyncGenerator[Item, None]) -> Iterator[Item]:
        """Iterate over an asynchronous generator; closing the iterator closes the generator."""
        if _running_loop() is self._started():
            yield from LoopThread().iterate(pieces)
            return
        try:
            while (piece := self.run(_awaited(anext(pieces, END)))) is not END:
                yield piece
        finally:
            # The garbage collector may close this iterator in the loop's own thread, which then closes the generator.
            if _running_loop() is not self._loop:
                self.run(_awaited(pieces.aclose()))

    def _started(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                threading.Thread(target=self._loop.run_forever, name="robustrag-loop", daemon=True).start()
            return self._loop


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


async def _settled(coroutine: Coroutine[Any, Any, Result]) -> tuple[Result | Any, BaseException | None]:
    """Return the coroutine's result, and an error apart that would end the event loop, or be taken for its own."""
    try:
        return await coroutine, None
    except (KeyboardInterrupt, SystemExit, CancelledError) as interrupt:
        return None, interrupt


async def _awaited(awaitable: Awaitable[Result]) -> Result:
    return await awaitable


BACKGROUND = LoopThread()
"""The loop that makes the calls of all synchronous callers; what may block runs in threads."""

if hasattr(os, "register_at_fork"):  # not on Windows, which does not fork
    os.register_at_fork(after_in_child=BACKGROUND.forget)
    os.register_at_fork(after_in_child=THREADS.forget)


class PerLoop(Generic[Made]):
    """One object per event loop (a client, a lock), made on demand; a closed loop's object is dropped."""

    def __init__(self, make: Callable[[], Made]) -> None:
        self._make = make
        self._made: dict[asyncio.AbstractEventLoop, Made] = {}

    def here(self) -> Made:
        """Return the running event loop's object."""
        loop = asyncio.get_running_loop()
        if loop not in self._made:
            for other in tuple(self._made):
                if other.is_closed():
                    self._made.pop(other, None)
            self._made[loop] = self._make()
        return self._made[loop]

    def pop(self) -> Made | None:
        """Remove and return the running event loop's object; None if it has none."""
        return self._made.pop(asyncio.get_running_loop(), None)
