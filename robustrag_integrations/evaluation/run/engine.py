"""The engine that makes rows in this process, several at a time in one event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from robustrag_integrations.evaluation.run.bench import Bench
from robustrag_integrations.evaluation.run.planning import Job


@dataclass(frozen=True)
class LocalEngine:
    """Makes rows in this process.

    Attributes:
        cache: the folder of the cache of model calls; None for none.
        concurrency: number of rows that are made at a time. Models in this process run one row at a time all the same.
    """

    cache: str | None = None
    concurrency: int = 1

    @cached_property
    def bench(self) -> Bench:
        """The bench with the models, which stay loaded from one run to the next."""
        return Bench(self.cache)

    def run(self, jobs: Sequence[Job], on_row: Callable[[dict[str, Any]], None], on_job: Callable[[Job], None]) -> None:
        """Make the rows, hand over each as soon as it is made, and report each that is begun.

        An exception (an interrupt, or one that `on_row` raises) cancels what is under way.
        """
        self.bench.prepare(jobs)
        asyncio.run(self._run(iter(jobs), on_row, on_job))

    async def _run(
        self, jobs: Iterator[Job], on_row: Callable[[dict[str, Any]], None], on_job: Callable[[Job], None]
    ) -> None:
        async def work() -> None:
            for job in jobs:
                on_job(job)
                on_row(await self.bench.row(job))

        workers = [asyncio.create_task(work()) for _ in range(self.concurrency)]
        try:
            await asyncio.gather(*workers)
        finally:
            for worker in workers:
                worker.cancel()
            await asyncio.gather(*workers, return_exceptions=True)
