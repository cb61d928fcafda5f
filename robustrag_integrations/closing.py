"""Closing asynchronous streams at once: the collector of garbage would do so only some time later."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import TypeVar

Item = TypeVar("Item")


@asynccontextmanager
async def closed_after(pieces: AsyncIterator[Item]) -> AsyncGenerator[AsyncIterator[Item], None]:
    """Close what can be closed of an asynchronous iterator when the block ends."""
    try:
        yield pieces
    finally:
        close = getattr(pieces, "aclose", None)
        if close is not None:
            await close()
