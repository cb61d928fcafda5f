"""Things of which each event loop needs its own: connections, and semaphores and locks that somebody has waited for."""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Callable
from typing import Generic, TypeVar

Made = TypeVar("Made")


class PerLoop(Generic[Made]):
    """Makes one thing for each event loop that asks for it; most hold their loop, and are let go once it is closed."""

    def __init__(self, make: Callable[[], Made]) -> None:
        self._make = make
        self._made: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, Made] = weakref.WeakKeyDictionary()

    def here(self) -> Made:
        """What belongs to the running event loop."""
        loop = asyncio.get_running_loop()
        made = self._made.get(loop)
        if made is None:
            for other in [known() for known in self._made.keyrefs()]:
                if other is not None and other.is_closed():
                    self._made.pop(other, None)
            made = self._made.setdefault(loop, self._make())
        return made

    def pop(self) -> Made | None:
        """What belongs to the running event loop, which has nothing from then on."""
        return self._made.pop(asyncio.get_running_loop(), None)
