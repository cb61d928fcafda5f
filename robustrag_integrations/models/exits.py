"""A model's function that exits: its call has failed, and the program and the other calls go on.

SystemExit (`sys.exit` in a client) and GeneratorExit become a ModelError where the function is called. Further out they
mean something else: the program is told to stop, or a stream is closed. KeyboardInterrupt and cancellations pass.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from robustrag_integrations._util.redaction import in_one_line
from robustrag_integrations.errors import ModelError

Result = TypeVar("Result")

_EXITS = (SystemExit, GeneratorExit)


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
