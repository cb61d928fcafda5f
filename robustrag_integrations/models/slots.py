"""How many calls may be under way at a time, in threads."""

from __future__ import annotations

from queue import SimpleQueue
from typing import Final

_MOST: Final = 1 << 16  # no process has so many threads


class Slots:
    """A number of slots; a `with` block takes one for as long as it lasts, and waits until one is free.

    The semaphores of `threading` are written in Python: to take and give back one of theirs takes five times as long.

    Args:
        count: of slots, at least 1.
    """

    def __init__(self, count: int) -> None:
        self._free: SimpleQueue[None] = SimpleQueue()
        for _ in range(min(count, _MOST)):
            self._free.put(None)

    def __enter__(self) -> None:
        self._free.get()

    def __exit__(self, *raised: object) -> None:
        self._free.put(None)
