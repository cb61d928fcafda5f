"""Calling a model's function: in a daemon thread, and what it means when the function exits.

`concurrent.futures` and anyio wait for their threads when the interpreter ends, so that one call that hangs would keep
the process alive for ever. These are daemons; there are as many as there are calls at a time, and they are used again.

SystemExit (`sys.exit` in a client) and GeneratorExit become a ModelError where the function is called: its call has
failed, and the program and the other calls go on. Further out they mean something else: the program is told to stop, or
a stream is closed. KeyboardInterrupt and cancellations pass.
"""

from __future__ import annotations

import asyncio
import os
import queue
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from contextvars import Context, copy_context
from typing import Any, TypeAlias, TypeVar

from robustrag_integrations._util.redaction import in_one_line
from robustrag_integrations.errors import ModelError

Result = TypeVar("Result")

_EXITS = (SystemExit, GeneratorExit)
_IDLE = 10.0  # seconds after which a thread without a task ends


class Task(Future[Result]):
    """A function's future result. It can be cancelled at any time, which drops the result; the function goes on.

    Attributes:
        ended: True once the function has returned.
    """

    ended = False

    def settle(self, result: Any, error: BaseException | None) -> None:
        """Set the function's result or error."""
        self.ended = True
        if not self.set_running_or_notify_cancel():
            return
        if error is None:
            self.set_result(result)
        elif isinstance(error, StopIteration):  # which no asynchronous future can hold
            self.set_exception(RuntimeError(f"the function raised StopIteration {error}"))
        else:
            self.set_exception(error)


_Work: TypeAlias = tuple[Context, Task[Any], Callable[..., Any], tuple[Any, ...]]


class ThreadPool:
    """A pool of reusable daemon threads; idle ones end after a while."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Reset the pool: a child process made by `fork` has none of its parent's threads."""
        self._waiting: queue.SimpleQueue[_Work | None] = queue.SimpleQueue()
        self._idle = threading.Semaphore(0)  # idle threads, less the tasks handed to them

    def submit(self, fn: Callable[..., Result], *args: Any) -> Task[Result]:
        """Call a function in a thread, in a copy of this context."""
        task = Task[Result]()
        work = (copy_context(), task, fn, args)
        if self._idle.acquire(blocking=False):
            self._waiting.put(work)
        else:
            threading.Thread(target=self._serve, args=(work,), name="robustrag", daemon=True).start()
        return task

    def close(self) -> None:
        """End the threads that wait for a task."""
        while self._idle.acquire(blocking=False):
            self._waiting.put(None)

    def _serve(self, work: _Work | None) -> None:
        while work is not None:
            context, task, fn, args = work
            result, failure = None, None
            try:
                result = context.run(fn, *args)
            except BaseException as error:
                failure = error
            task.settle(result, failure)
            del context, task, fn, args, result, failure
            work = None  # nothing of a call is held while the thread waits
            self._idle.release()
            try:
                work = self._waiting.get(timeout=_IDLE)
            except queue.Empty:
                if self._idle.acquire(blocking=False):
                    return
                work = self._waiting.get()  # a task was just handed to this thread


POOL = ThreadPool()
"""The pool of this process; it holds nothing of a single model or answer."""

if hasattr(os, "register_at_fork"):  # not on Windows, which does not fork
    os.register_at_fork(after_in_child=POOL.forget)


async def in_thread(fn: Callable[..., Result], *args: Any) -> Result:
    """Call a function in a thread of the pool, without blocking the event loop."""
    return await asyncio.wrap_future(POOL.submit(fn, *args))


def called(fn: Callable[..., Result], *args: Any) -> Result:
    """Call a model's function.

    Raises:
        ModelError: it raised SystemExit or GeneratorExit.
    """
    try:
        return fn(*args)
    except _EXITS as error:
        raise _failure(error) from error


async def acalled(reply: Awaitable[Result]) -> Result:
    """`called` for what a coroutine function returns."""
    task = _current_task()
    try:
        return await reply
    except _EXITS as error:
        if isinstance(error, GeneratorExit) and _current_task() is not task:
            raise  # this coroutine is closed: its event loop is gone
        raise _failure(error) from error


def _failure(error: BaseException) -> ModelError:
    return ModelError(f"the model's function raised {in_one_line(error)}")


def _current_task() -> asyncio.Task[Any] | None:
    try:
        return asyncio.current_task()
    except RuntimeError:  # no event loop runs here
        return None
