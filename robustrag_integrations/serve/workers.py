"""Several processes behind one address: each is a whole server of its own, and all accept from one socket."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any

_LAST_SECONDS = 35.0  # that a process has to end: a little more than answers under way do

Work = Callable[["Ready"], None]


class WorkerError(Exception):
    """A process could not start serving; carries what it said of it."""


class Ready:
    """How a process tells that it serves, or why it cannot. One that is left behind by its parent stops.

    Args:
        line: to the parent.
    """

    def __init__(self, line: Connection) -> None:
        self._line = line

    def serving(self) -> None:
        """It is about to serve."""
        self._line.send(None)
        threading.Thread(target=self._stop_with_the_parent, name="robustrag-parent", daemon=True).start()

    def failed(self, said: tuple[str, str]) -> None:
        """It will not serve, for this reason."""
        self._line.send(said)

    def _stop_with_the_parent(self) -> None:
        try:
            self._line.recv()  # nothing is ever sent
        except (EOFError, OSError):
            os.kill(os.getpid(), signal.SIGTERM)


@dataclass(frozen=True)
class _Worker:
    process: BaseProcess
    line: Connection

    def await_ready(self) -> None:
        """Wait until it serves.

        Raises:
            WorkerError: it does not, with what it said.
        """
        try:
            said = self.line.recv()
        except (EOFError, OSError):
            self.process.join()
            said = ("failure", f"a process ended with code {self.process.exitcode} before it served")
        if said is not None:
            raise WorkerError(*said)


def run_workers(work: Work, count: int, *, serving: Callable[[], Any], replaced: Callable[[int | None], Any]) -> None:
    """Serve in so many processes until this one is told to stop; answers under way are finished first.

    A process that ends by itself is replaced.

    Args:
        work: what each does; it and what it holds can be pickled.
        count: how many.
        serving: called once all serve.
        replaced: called with the exit code of each process that ended by itself.

    Raises:
        WorkerError: a process could not start.
    """
    workers: list[_Worker] = []
    with _stopping_on_sigterm():
        try:
            workers.extend(_started(work) for _ in range(count))
            for worker in workers:
                worker.await_ready()
            serving()
            while True:
                wait([worker.process.sentinel for worker in workers])
                for at, worker in enumerate(workers):
                    if not worker.process.is_alive():
                        replaced(worker.process.exitcode)
                        workers[at] = _started(work)
                        workers[at].await_ready()
        finally:
            _stop(workers)


def _started(work: Work) -> _Worker:
    context = get_context("spawn")  # a fork would copy locks, threads and connections
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(work, theirs), name="robustrag-serve", daemon=True)
    process.start()
    theirs.close()
    return _Worker(process, ours)


def _serve(work: Work, line: Connection) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all processes; the first one tells the others
    signal.signal(signal.SIGTERM, _end)  # uvicorn sends it again when it has finished
    work(Ready(line))


def _stop(workers: list[_Worker]) -> None:
    for worker in workers:
        worker.process.terminate()
    for worker in workers:
        worker.process.join(_LAST_SECONDS)
        worker.process.kill()


@contextmanager
def _stopping_on_sigterm() -> Iterator[None]:
    """SIGTERM ends the block as Ctrl-C does, with exit code 143."""
    before = signal.signal(signal.SIGTERM, _end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _end(*_: object) -> None:
    """End with everything cleaned up that a killed process leaves behind, such as semaphores."""
    raise SystemExit(128 + signal.SIGTERM)
