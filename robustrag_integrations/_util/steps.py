"""Drives generators that yield requests and are sent replies, and closes asynchronous streams at once."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Generator
from typing import Any, Generic, TypeVar

Item = TypeVar("Item")
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


class closed_after(Generic[Item]):
    """Close an asynchronous iterator, if it can be closed, when the block ends.

    No generator, which an event loop that ends would close while it closes the stream.

    Args:
        pieces: the iterator.
    """

    def __init__(self, pieces: AsyncIterator[Item]) -> None:
        self._pieces = pieces

    async def __aenter__(self) -> AsyncIterator[Item]:
        return self._pieces

    async def __aexit__(self, *raised: object) -> None:
        close = getattr(self._pieces, "aclose", None)
        if close is not None:
            await close()
