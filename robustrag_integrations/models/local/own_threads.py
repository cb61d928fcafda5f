"""Blocking calls off the event loop, each in a thread of its own."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextvars import copy_context
from typing import TypeVar

Result = TypeVar("Result")


async def in_own_thread(work: Callable[..., Result], *args: object) -> Result:
    """`asyncio.to_thread` for calls that wait for each other.

    The event loop's own pool has few threads on small machines: calls that fill it would wait for calls that have none.
    Who is cancelled does not wait for the thread, which ends with the call.
    """
    done: Future[Result] = Future()
    threading.Thread(target=copy_context().run, args=(_call, done, work, args), name="robustrag-local").start()
    return await asyncio.wrap_future(done)


def _call(done: Future[Result], work: Callable[..., Result], args: tuple[object, ...]) -> None:
    if not done.set_running_or_notify_cancel():
        return
    try:
        result = work(*args)
    except BaseException as error:
        done.set_exception(error)
    else:
        done.set_result(result)
