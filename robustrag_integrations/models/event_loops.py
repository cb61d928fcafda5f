"""An event loop in a thread of its own, for synchronous callers; and objects that each event loop owns."""

from __future__ import annotations

import asyncio
import os
import threading
import weakref
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator
from concurrent.futures import CancelledError
from contextlib import closing, suppress
from typing import Any, Generic, TypeVar

from robustrag_integrations.errors import ModelError

Result = TypeVar("Result")
Item = TypeVar("Item")
Made = TypeVar("Made")

_END: Any = object()


class ModelClosedError(ModelError):
    """A call was under way when the model was closed."""

    def __init__(self) -> None:
        super().__init__("the model was closed while it was asked; close it when all calls have returned")


class LoopThread:
    """Runs coroutines for synchronous callers, any number at a time; starts when it is first needed.

    The thread is a daemon; it ends with `close`, or when this object is collected.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: weakref.finalize[Any, Any] | None = None
        self._process = 0

    @property
    def running(self) -> bool:
        """True if there is a loop; a child process made by `fork` has none of its parent's threads."""
        return self._loop is not None and self._process == os.getpid()

    def run(self, coroutine: Coroutine[Any, Any, Result], loop: asyncio.AbstractEventLoop | None = None) -> Result:
        """Run a coroutine to its end; an interrupt while waiting cancels it.

        Args:
            coroutine: the coroutine. In the loop's own thread, which cannot wait for itself, another loop runs it.
            loop: the loop in which it has begun; None for the current one.

        Raises:
            ModelClosedError: `close` was called meanwhile, or since that loop was started.
        """
        if self._loop is not None and _runs_here(self._loop):
            with closing(LoopThread()) as another:
                return another.run(coroutine)
        with self._lock:  # a coroutine started under the lock is cancelled when the thread ends
            if loop is not None and not (self._loop is loop and self.running):
                coroutine.close()
                raise ModelClosedError
            future = asyncio.run_coroutine_threadsafe(_interruptible(coroutine), self._started())
        try:
            result, interrupt = future.result()
        except CancelledError:
            coroutine.close()  # it may never have begun
            raise ModelClosedError from None
        except BaseException:
            future.cancel()
            raise
        if interrupt is not None:
            raise interrupt
        return result

    def iterate(self, pieces: AsyncGenerator[Item, None]) -> Iterator[Item]:
        """Iterate over an asynchronous generator; closing the iterator closes the generator.

        Raises:
            ModelClosedError: as for `run`.
        """
        with self._lock:
            loop = self._started()
        try:
            while (piece := self.run(_next(pieces), loop)) is not _END:
                yield piece
        finally:
            # The garbage collector may close this iterator in the loop's own thread; the generator is then collected
            # as well, and its loop closes it.
            if not (loop.is_closed() or _runs_here(loop)):
                with suppress(ModelClosedError):  # which closes the generators of its loop
                    self.run(_close(pieces), loop)

    def close(self) -> None:
        """Cancel what runs, and end the thread. Another call starts a new one."""
        with self._lock:
            stop, self._stop, self._loop = self._stop, None, None
        if stop is not None:
            stop()

    def _started(self) -> asyncio.AbstractEventLoop:
        if self._loop is None or not self.running:
            if self._stop is not None:
                self._stop.detach()
            loop = asyncio.new_event_loop()
            thread = threading.Thread(target=_serve, args=(loop,), name="robustrag-loop", daemon=True)
            thread.start()
            self._loop, self._process = loop, os.getpid()
            self._stop = weakref.finalize(self, _end, loop, thread)
        return self._loop


async def _interruptible(coroutine: Coroutine[Any, Any, Result]) -> tuple[Result | Any, BaseException | None]:
    """Return the coroutine's result, and an error apart that would end the event loop, or be taken for its own."""
    try:
        return await coroutine, None
    except (KeyboardInterrupt, SystemExit, CancelledError) as interrupt:
        return None, interrupt


def _runs_here(loop: asyncio.AbstractEventLoop) -> bool:
    try:
        return asyncio.get_running_loop() is loop
    except RuntimeError:
        return False


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
    finally:
        unfinished = asyncio.all_tasks(loop)
        for task in unfinished:
            task.cancel()
        loop.run_until_complete(asyncio.gather(*unfinished, return_exceptions=True))
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.run_until_complete(loop.shutdown_default_executor())
        loop.close()


def _end(loop: asyncio.AbstractEventLoop, thread: threading.Thread) -> None:
    if thread.is_alive():  # not so in a child process
        loop.call_soon_threadsafe(loop.stop)
        if thread is not threading.current_thread():  # the last reference may be dropped in the loop itself
            thread.join()


async def _next(pieces: AsyncGenerator[Item, None]) -> Item:
    return await anext(pieces, _END)


async def _close(pieces: AsyncGenerator[Any, None]) -> None:
    await pieces.aclose()


BACKGROUND = LoopThread()
"""The loop that looks after the calls of synchronous functions, for all models; what may block runs in threads."""


class PerLoop(Generic[Made]):
    """One object per event loop (a client, a lock), made on demand; a closed loop's object is dropped."""

    def __init__(self, make: Callable[[], Made]) -> None:
        self._make = make
        self._made: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, Made] = weakref.WeakKeyDictionary()

    def here(self) -> Made:
        """Return the running event loop's object."""
        loop = asyncio.get_running_loop()
        made = self._made.get(loop)
        if made is None:
            for other in [known() for known in self._made.keyrefs()]:
                if other is not None and other.is_closed():
                    self._made.pop(other, None)
            made = self._made.setdefault(loop, self._make())
        return made

    def pop(self) -> Made | None:
        """Remove and return the running event loop's object; None if it has none."""
        return self._made.pop(asyncio.get_running_loop(), None)
