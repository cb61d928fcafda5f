"""Several server processes behind one address: each is a whole server, and all accept from one socket.

uvicorn's own supervisor (0.54) loads an application inside its event loop, ends all processes when one that takes
another's place cannot start, waits for one that hangs, and leaves its processes behind when it is killed.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from multiprocessing import get_context
from multiprocessing.connection import Connection, Pipe, wait
from multiprocessing.process import BaseProcess
from time import monotonic, sleep
from typing import Any

_LAST_SECONDS = 35.0  # that all processes have to end: a little more than answers under way do
_PAUSES = (0.0, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0)  # seconds before a place is taken again, by how many ended soon
_SOON = 60.0  # seconds of serving before which a process ended soon
_ENDING = 5.0  # seconds that a process has which says that it does not serve
_TRIES = 4  # at taking each place; when all have failed, no process can start any more

Serving = Callable[[], None]
Work = Callable[[Serving], None]
Why = tuple[str, str]  # "usage" or "failure", and the message


class WorkerError(Exception):
    """A process could not start serving; carries the kind of error and its message."""


def run_workers(work: Work, count: int, *, serving: Callable[[], Any], replaced: Callable[[str, float], Any]) -> None:
    """Serve in this many processes until this one is told to stop; answers under way are finished first.

    A process that ends by itself is replaced, after a pause that grows while processes end soon.

    Args:
        work: what each does; can be pickled. It calls its argument when it is about to serve, or raises WorkerError.
        count: how many.
        serving: called once all serve.
        replaced: called when a process ended by itself: with why, and in how many seconds the next one starts.

    Raises:
        WorkerError: a process could not start at first, or later none can.
        KeyboardInterrupt: it was told to stop by SIGINT.
        SystemExit: by SIGTERM.
    """
    places = [_Place(work) for _ in range(count)]
    with _stop_signals() as signals:
        try:
            begun = False
            while not signals.poll():
                for place in places:
                    if (why := place.look()) is None:
                        continue
                    if not begun:
                        raise WorkerError(*why)
                    if all(p.failed >= _TRIES for p in places):
                        raise WorkerError("failure", f"no process can start any more: {why[1]}")
                    replaced(why[1], place.pause)
                if not begun and all(place.since for place in places):
                    begun = True
                    serving()
                due = min((place.due for place in places if place.process is None), default=None)
                lines = [place.line for place in places if place.line is not None]
                wait([signals, *lines], None if due is None else max(0.0, due - monotonic()))
            if signals.recv() == signal.SIGINT:
                raise KeyboardInterrupt
            raise SystemExit(128 + signal.SIGTERM)
        finally:
            _stop([place.process for place in places if place.process is not None], signals)


def _stop(processes: list[BaseProcess], signals: Connection) -> None:
    """Have all processes finish the answers under way; an interrupt does not wait for that."""
    for process in processes:
        process.terminate()
    end = monotonic() + _LAST_SECONDS
    while (left := [p for p in processes if p.is_alive()]) and (seconds := end - monotonic()) > 0:
        wait([signals, *(process.sentinel for process in left)], seconds)
        if signals.poll() and signals.recv() == signal.SIGINT:
            break
    for process in processes:
        process.kill()
        process.join()


class _Place:
    """A server process, and its replacements.

    Attributes:
        process: the one that is there now.
        line: there is something to read when it serves, and when it has ended.
        since: when it began to serve, by the monotonic clock.
        failed: number of workers in a row that could not start.
        pause: how many seconds there is none, after the last one.
        due: when the next one starts.
    """

    def __init__(self, work: Work) -> None:
        self._work, self._soon = work, 0
        self.process: BaseProcess | None = None
        self.line: Connection | None = None
        self.since: float | None = None
        self.failed = 0
        self.pause = self.due = 0.0

    def look(self) -> Why | None:
        """Start a process if it is due. Return the reason if it has ended or could not start."""
        if self.process is None or self.line is None:
            if monotonic() < self.due:
                return None
            try:
                self._start()
                return None
            except OSError as error:
                why = "failure", f"a process could not be started: {error}"
        elif not self.line.poll():
            return None
        else:
            try:
                news: Why | None = self.line.recv()
            except (EOFError, OSError):
                news = ("failure", "")
            if news is None:
                self.since, self.failed = monotonic(), 0
                return None
            self.process.join(_ENDING)  # it is about to end, if it was not for its threads
            self.process.kill()
            self.process.join()
            before = "" if self.since else " before it served"
            why = news if news[1] else ("failure", f"a process ended with code {self.process.exitcode}{before}")
        self.failed += self.since is None
        self._soon = self._soon + 1 if self.since is None or monotonic() - self.since < _SOON else 0
        self.pause = _PAUSES[min(self._soon, len(_PAUSES) - 1)]
        self.process = self.line = self.since = None
        self.due = monotonic() + self.pause
        return why

    def _start(self) -> None:
        context = get_context("spawn")  # a fork would copy locks, threads and connections
        self.line, theirs = context.Pipe()
        self.process = context.Process(target=_serve, args=(self._work, theirs), name="robustrag-serve", daemon=True)
        handler = signal.signal(signal.SIGINT, signal.SIG_IGN)  # inherited: it would end with a traceback
        try:
            with theirs:
                self.process.start()
        except OSError:
            self.process = None
            raise
        finally:
            signal.signal(signal.SIGINT, handler)


def _serve(work: Work, line: Connection) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all processes; the first one tells the others
    signal.signal(signal.SIGTERM, _end)  # uvicorn sends it again when it has finished
    threading.Thread(target=_end_with_the_parent, args=(line,), name="robustrag-parent", daemon=True).start()
    try:
        work(lambda: line.send(None))
    except WorkerError as error:
        line.send(error.args)


def _end(*_: object) -> None:
    """Exit, after cleaning up what a killed process would leave behind, such as semaphores."""
    raise SystemExit(128 + signal.SIGTERM)


def _end_with_the_parent(line: Connection) -> None:
    with suppress(EOFError, OSError):
        line.recv()  # nothing is ever sent
    os.kill(os.getpid(), signal.SIGTERM)
    sleep(_LAST_SECONDS)
    os._exit(1)


@contextmanager
def _stop_signals() -> Iterator[Connection]:
    """Yield a connection that receives SIGINT and SIGTERM; also where a shell has its background ignore SIGINT."""
    read, write = Pipe(duplex=False)
    numbers = signal.SIGINT, signal.SIGTERM
    with read, write:
        before = [signal.signal(number, lambda number, _: write.send(number)) for number in numbers]
        try:
            yield read
        finally:
            for number, handler in zip(numbers, before, strict=True):
                signal.signal(number, handler)
