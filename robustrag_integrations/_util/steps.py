"""Drives generators that yield requests and are sent replies, for synchronous and asynchronous callers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator
from typing import Any, TypeVar

Step = TypeVar("Step")
Result = TypeVar("Result")


def _nothing(error: Exception) -> bool:
    return False


def driven(
    steps: Generator[Step, Any, Result],
    perform: Callable[[Step], Any],
    *,
    keeps: Callable[[Exception], bool] = _nothing,
) -> Result:
    """Run a generator to its end, and return its result.

    Args:
        steps: yields requests.
        perform: gives the reply to a request.
        keeps: True for an error that is sent as its request's reply; any other one is raised here.
    """
    reply: Any = None
    while True:
        try:
            step = steps.send(reply)
        except StopIteration as done:
            result: Result = done.value
            return result
        try:
            reply = perform(step)
        except Exception as error:
            if not keeps(error):
                raise
            reply = error


async def adriven(
    steps: Generator[Step, Any, Result],
    perform: Callable[[Step], Awaitable[Any]],
    *,
    keeps: Callable[[Exception], bool] = _nothing,
) -> Result:
    """`driven` without blocking the event loop."""
    reply: Any = None
    while True:
        try:
            step = steps.send(reply)
        except StopIteration as done:
            result: Result = done.value
            return result
        try:
            reply = await perform(step)
        except Exception as error:
            if not keeps(error):
                raise
            reply = error
