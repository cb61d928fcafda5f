"""How many requests are under way: some are answered, some wait their turn, the rest is sent away."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from robustrag_integrations.serve.limits import Limits
from robustrag_integrations.serve.refusals import RefusedError

_RETRY_AFTER = 1  # seconds


class Gate:
    """Lets requests in; used in one event loop.

    Attributes:
        turn: an asynchronous context manager that waits until there is room to answer.
    """

    def __init__(self, limits: Limits) -> None:
        self.turn = asyncio.Semaphore(limits.concurrent)
        self._free = limits.concurrent + limits.waiting

    @contextmanager
    def place(self) -> Iterator[None]:
        """A place among those that are answered or wait.

        Raises:
            RefusedError: there is none left.
        """
        if self._free == 0:
            raise RefusedError(
                429,
                "too many requests are under way; try again later",
                kind="rate_limit_error",
                code="rate_limit_exceeded",
                retry_after=_RETRY_AFTER,
            )
        self._free -= 1
        try:
            yield
        finally:
            self._free += 1
