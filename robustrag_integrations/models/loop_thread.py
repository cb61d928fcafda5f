"""An event loop in a thread of its own, in which synchronous callers run asynchronous calls."""

from __future__ import annotations

import asyncio
import os
import threading
import weakref
from collections.abc import AsyncIterator, Coroutine, Iterator
from concurrent.futures import CancelledError
from contextlib import suppress
from typing import Any, TypeVar

from robustrag_integrations.errors import ModelError
from robustrag_integrations.forks import lock_held_over_forks
from robustrag_integrations.models.time_limits import END, next_piece

Result = TypeVar("Result")
Item = TypeVar("Item")


_CLOSED = "the model was closed while it was asked; close it when all calls have returned"


class ModelClosedError(ModelError):
    """A call was under way when the model was closed."""


def _is_running_here(loop: asyncio.AbstractEventLoop) -> bool:
    try:
        return asyncio.get_running_loop() is loop
    except RuntimeError:
        return False


class LoopThread:
    """Runs coroutines for synchronous callers, any number at a time; starts when it is first needed.

    The thread is a daemon; it ends with `close`, or when nobody holds this object any more.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = lock_held_over_forks()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: weakref.finalize[Any, Any] | None = None
        self._process = os.getpid()

    @property
    def running(self) -> bool:
        """Whether there is a loop; a child process made by `fork` has none of its parent's threads."""
        return self._loop is not None and self._process == os.getpid()

    @property
    def runs_here(self) -> bool:
        """Whether this thread is the loop's own, which cannot wait for itself."""
        return self._loop is not None and _is_running_here(self._loop)

    def run(self, coroutine: Coroutine[Any, Any, Result], loop: asyncio.AbstractEventLoop | None = None) -> Result:
        """Run a coroutine to its end; an interrupt while waiting cancels it.

        Args:
            coroutine: what is run.
            loop: the one in which it has begun; None for whichever runs.

        Raises:
            ModelClosedError: `close` was called meanwhile, or since that loop was started.
        """
        with self._lock:  # what is begun now is there when the thread ends, and is cancelled then
            if loop is not None and not (self._loop is loop and self.running):
                coroutine.close()
                raise ModelClosedError(_CLOSED)
            future = asyncio.run_coroutine_threadsafe(coroutine, self._started())
        try:
            return future.result()
        except CancelledError:
            raise ModelClosedError(_CLOSED) from None
        except BaseException:
            future.cancel()
            raise

    def iterate(self, pieces: AsyncIterator[Item]) -> Iterator[Item]:
        """Give what an asynchronous generator gives; closing the iterator closes the generator.

        Raises:
            ModelClosedError: as for `run`.
        """
        loop = self._started()
        try:
            while (piece := self.run(next_piece(pieces), loop)) is not END:
                yield piece
        finally:
            # Where the collector of garbage closes this iterator, that may be in the loop's own thread, which cannot
            # wait for itself; the generator is collected as well then, and its loop closes it.
            if not (loop.is_closed() or _is_running_here(loop)):
                with suppress(ModelClosedError):  # which closes the generators of its loop
                    self.run(_close(pieces), loop)

    def close(self) -> None:
        """Cancel what runs, and end the thread. Another call starts a new one."""
        with self._lock:
            stop, self._stop, self._loop = self._stop, None, None
        if stop is not None:
            stop()

    def _started(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None or not self.running:
                if self._stop is not None:
                    self._stop.detach()
                loop = asyncio.new_event_loop()
                thread = threading.Thread(target=_serve, args=(loop,), name=self._name, daemon=True)
                thread.start()
                self._loop, self._process = loop, os.getpid()
                self._stop = weakref.finalize(self, _end, loop, thread)
            return self._loop


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
        if thread is not threading.current_thread():  # the last reference may fall in the loop itself
            thread.join()


async def _close(pieces: Any) -> None:
    await pieces.aclose()
