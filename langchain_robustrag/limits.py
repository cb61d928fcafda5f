"""How many model calls may be under way at a time: one cap per chain, whatever calls it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager, nullcontext

from robustrag_integrations.forks import lock_held_over_forks, renew_in_children
from robustrag_integrations.models.call_threads import CallThreads
from robustrag_integrations.models.per_loop import PerLoop
from robustrag_integrations.models.slots import Slots


class CallLimit:
    """A cap for all threads, and one for each event loop.

    LangChain's `max_concurrency` counts per level: four inputs of five groups each may be twenty calls. Here calls with
    the same `max_concurrency` share one lowered cap, so that a batch keeps to it too.

    Attributes:
        calls: the cap.
        threads: those of synchronous calls that may be given up.
    """

    def __init__(self, calls: int) -> None:
        self.calls = calls
        self.threads = CallThreads(calls)
        self._lock = lock_held_over_forks()
        self._threads: dict[int, Slots] = {}
        self._loops: PerLoop[dict[int, asyncio.Semaphore]] = PerLoop(dict)
        renew_in_children(self, CallLimit._free_slots)

    def __reduce__(self) -> tuple[type[CallLimit], tuple[int]]:
        """A copy, or one in another process, has a cap of its own."""
        return CallLimit, (self.calls,)

    def lowered(self, max_concurrency: int | None) -> int:
        """The cap of a call with this `max_concurrency` in its config."""
        return self.calls if max_concurrency is None else max(1, min(self.calls, max_concurrency))

    def slot(self, max_concurrency: int | None) -> AbstractContextManager[None]:
        """Hold one of the slots."""
        cap = self.lowered(max_concurrency)
        return self._lowered_slot(cap) if cap < self.calls else self._thread_slots(self.calls)

    @contextmanager
    def _lowered_slot(self, cap: int) -> Iterator[None]:
        with self._thread_slots(cap), self._thread_slots(self.calls):
            yield

    @asynccontextmanager
    async def aslot(self, max_concurrency: int | None) -> AsyncIterator[None]:
        """Hold one of the slots of this event loop."""
        cap = self.lowered(max_concurrency)
        async with self._loop_slots(cap) if cap < self.calls else nullcontext(), self._loop_slots(self.calls):
            yield

    def _free_slots(self) -> None:
        """Free what the parent process's threads held when it forked."""
        self._threads.clear()

    def _thread_slots(self, cap: int) -> Slots:
        with self._lock:
            if cap not in self._threads:
                self._threads[cap] = Slots(cap)
            return self._threads[cap]

    def _loop_slots(self, cap: int) -> asyncio.Semaphore:
        with self._lock:
            caps = self._loops.here()
            if cap not in caps:
                caps[cap] = asyncio.Semaphore(cap)
            return caps[cap]
