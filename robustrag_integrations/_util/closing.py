"""Closes asynchronous streams at once; the garbage collector would do so only some time later."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Generic, TypeVar

Item = TypeVar("Item")


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
