"""Things of which each event loop needs its own, such as semaphores and locks."""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Callable
from typing import Generic, TypeVar

Made = TypeVar("Made")


class PerLoop(Generic[Made]):
    """Makes one thing for each event loop that asks for it.

    A semaphore or a lock that somebody had to wait for holds its loop, so that it would never be freed: what was made
    for loops that are closed is let go when another loop asks.

    Args:
        make: makes it.
    """

    def __init__(self, make: Callable[[], Made]) -> None:
        self._make = make
        self._made: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, Made] = weakref.WeakKeyDictionary()

    def here(self) -> Made:
        """What belongs to the running event loop."""
        loop = asyncio.get_running_loop()
        found = self._made.get(loop)
        if found is None:
            for other in [known() for known in self._made.keyrefs()]:
                if other is not None and other.is_closed():
                    self._made.pop(other, None)
            found = self._made.setdefault(loop, self._make())
        return found
