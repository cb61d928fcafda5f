"""Drives generators that yield requests and are sent replies, and closes asynchronous streams at once."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Generator
from typing import Any, Generic, TypeVar

Item = TypeVar("Item")
Step = TypeVar("Step")
Result = TypeVar("Result")


def driven(steps: Generator[Step, Any, Result], perform: Callable[[Step], Any]) -> Result:
    """Run a generator of requests to its end, sending it what `perform` gives for each, and return its result."""
    reply: Any = None
    while True:
        try:
            step = steps.send(reply)
        except StopIteration as done:
            return done.value  # type: ignore[no-any-return]
        reply = perform(step)


async def adriven(steps: Generator[Step, Any, Result], perform: Callable[[Step], Awaitable[Any]]) -> Result:
    """`driven` without blocking the event loop."""
    reply: Any = None
    while True:
        try:
            step = steps.send(reply)
        except StopIteration as done:
            return done.value  # type: ignore[no-any-return]
        reply = await perform(step)


class closed_after(Generic[Item]):
    """Close an asynchronous iterator, if it can be closed, when the block ends.

    No generator, which an event loop that ends would close while it closes the stream.
    """

    def __init__(self, pieces: AsyncIterator[Item]) -> None:
        self._pieces = pieces

    async def __aenter__(self) -> AsyncIterator[Item]:
        return self._pieces

    async def __aexit__(self, *raised: object) -> None:
        close = getattr(self._pieces, "aclose", None)
        if close is not None:
            await close()
