"""Rows made by the workers of an executor: processes, threads, or many machines (`concurrent.futures`' interface).

Workers are sent jobs and send rows back; models are loaded where they are asked. Only the caller writes a file.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future
from itertools import islice
from queue import SimpleQueue
from typing import Any

from robustrag_integrations._util.display import printable
from robustrag_integrations._util.errors import RobustRAGError
from robustrag_integrations.evaluation.run.planning import Job
from robustrag_integrations.evaluation.run.runner import LocalEngine

MOST_WAITING = 256  # rows that are handed out at a time: their passages are in memory twice

_OF_THREAD = threading.local()

Row = dict[str, Any]


class WorkerError(RobustRAGError):
    """A worker ended before its row was made; rows that others have made are kept."""


class WorkerEngine:
    """Has rows made by an executor's workers (processes, Dask, Ray), each with the cache in this folder of its machine.

    They need this package, the files of models, and functions of yours where they can be imported. Each row is handed
    over as soon as it is there. After an interrupt or an error what has not begun is cancelled, and rows that have come
    meanwhile are handed over. A worker that ends is a WorkerError, unless the executor begins its row again elsewhere.
    """

    def __init__(self, executor: Executor, cache: str | None = None) -> None:
        self._executor, self._cache = executor, cache

    def run(self, jobs: Sequence[Job], on_row: Callable[[Row], None]) -> None:
        """Make the rows."""
        rest, waiting, done = iter(jobs), set[Future[Row]](), SimpleQueue[Future[Row]]()

        def submit(count: int) -> None:
            for job in islice(rest, count):
                future = self._executor.submit(row_on_worker, job, self._cache)
                waiting.add(future)
                future.add_done_callback(done.put)

        try:
            submit(MOST_WAITING)
            while waiting:
                future = done.get()
                waiting.remove(future)
                row = _row_of(future)
                on_row(row)
                submit(1)
        except BaseException as error:
            for future in waiting:
                future.cancel()
            came = waiting if isinstance(error, (KeyboardInterrupt, WorkerError)) else ()
            for future in came:
                if future.done() and not future.cancelled() and future.exception() is None:
                    on_row(future.result())
            raise


def _row_of(future: Future[Row]) -> Row:
    try:
        return future.result()
    except RobustRAGError:
        raise
    except Exception as error:
        said = printable(f"{type(error).__name__}: {error}", 300)
        raise WorkerError(f"a worker ended before its row was made ({said}); run again to resume") from error


def row_on_worker(job: Job, cache: str | None) -> Row:
    """Make one row in the worker that calls this, whose models and defences stay loaded for the next one."""
    engines: dict[str | None, LocalEngine] = _OF_THREAD.__dict__.setdefault("engines", {})
    rows: list[Row] = []
    if cache not in engines:
        engines[cache] = LocalEngine(cache)
    engines[cache].run([job], rows.append)
    return rows[0]
