"""Several processes behind one address: each is a whole server of its own, and all accept from one socket."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing import get_context, resource_tracker
from multiprocessing.connection import Connection, Pipe, wait
from time import monotonic, sleep
from typing import Any

_LAST_SECONDS = 35.0  # that all processes have to end: a little more than answers under way do
_PAUSES = (0.0, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0)  # seconds before a place is taken again, by how many ended soon
_SOON = 60.0  # seconds of serving before which a process ended soon
_ENDING = 5.0  # seconds that a process has which says that it does not serve
_TRIES = 4  # at taking each place; when all have failed, no process can start any more

Work = Callable[["Ready"], None]
Why = tuple[str, str]  # "usage" or "failure", and what is said of it


class WorkerError(Exception):
    """A process could not start serving; carries the kind of error and what was said of it."""


class Ready:
    """How a process tells that it serves, or why it cannot. One that is left behind by its parent stops.

    Args:
        line: to the parent.
    """

    def __init__(self, line: Connection) -> None:
        self._line = line
        threading.Thread(target=self._stop_with_the_parent, name="robustrag-parent", daemon=True).start()

    def serving(self) -> None:
        """It is about to serve."""
        self._line.send(None)

    def failed(self, why: Why) -> None:
        """It will not serve, for this reason."""
        self._line.send(why)

    def _stop_with_the_parent(self) -> None:
        try:
            self._line.recv()  # nothing is ever sent
        except (EOFError, OSError):
            os.kill(os.getpid(), signal.SIGTERM)
            sleep(_LAST_SECONDS)
            os._exit(1)


def run_workers(work: Work, count: int, *, serving: Callable[[], Any], replaced: Callable[[str, float], Any]) -> None:
    """Serve in so many processes until this one is told to stop; answers under way are finished first.

    A process that ends by itself is replaced, after a pause that grows while processes end soon.

    Args:
        work: what each does; it and what it holds can be pickled.
        count: how many.
        serving: called once all serve.
        replaced: called when a process ended by itself: with why, and in how many seconds the next one starts.

    Raises:
        WorkerError: a process could not start at first, or later none can.
        KeyboardInterrupt: it was told to stop by SIGINT.
        SystemExit: by SIGTERM.
    """
    places = [_Place(work) for _ in range(count)]
    with _told_to_stop() as told:
        try:
            _keep_serving(places, told, serving, replaced)
        finally:
            _stop(places, told)


def _keep_serving(
    places: list[_Place], told: Connection, serving: Callable[[], Any], replaced: Callable[[str, float], Any]
) -> None:
    begun = False
    while not told.poll():
        for place in places:
            if (why := place.look()) is None:
                continue
            if not begun:
                raise WorkerError(*why)
            if all(p.is_hopeless for p in places):
                raise WorkerError("failure", f"no process can start any more: {why[1]}")
            replaced(why[1], place.pause)
        if not begun and all(place.serves for place in places):
            begun = True
            serving()
        due = min((place.due for place in places if place.worker is None), default=None)
        lines = [place.worker.line for place in places if place.worker is not None]
        wait([told, *lines], None if due is None else max(0.0, due - monotonic()))
    if told.recv() == signal.SIGINT:
        raise KeyboardInterrupt
    raise SystemExit(128 + signal.SIGTERM)


def _stop(places: list[_Place], told: Connection) -> None:
    """Have all processes finish what is under way; an interrupt does not wait for that."""
    processes = [place.worker.process for place in places if place.worker is not None]
    for process in processes:
        process.terminate()
    end = monotonic() + _LAST_SECONDS
    while (left := [p for p in processes if p.is_alive()]) and (seconds := end - monotonic()) > 0:
        wait([told, *(process.sentinel for process in left)], seconds)
        if told.poll() and told.recv() == signal.SIGINT:
            break
    for process in processes:
        process.kill()
        process.join()


class _Place:
    """A process that serves, and those that take its place.

    Args:
        work: what they do.

    Attributes:
        worker: the process; None for now.
        pause: how many seconds there is none, after the last one.
        due: when the next one starts, by the monotonic clock.
    """

    def __init__(self, work: Work) -> None:
        self._work, self._soon, self._failed = work, 0, 0
        self.worker: _Worker | None = None
        self.pause = self.due = 0.0

    @property
    def serves(self) -> bool:
        """Whether there is a process, and it serves."""
        return self.worker is not None and self.worker.since is not None

    @property
    def is_hopeless(self) -> bool:
        """Whether processes could not start again and again."""
        return self._failed >= _TRIES and not self.serves

    def look(self) -> Why | None:
        """Start a process if it is time to. Says why there is none any more if it has ended, or could not start."""
        if self.worker is not None:
            if (why := self.worker.look()) is None:
                return None
            served = self.worker.since
        elif monotonic() < self.due:
            return None
        else:
            try:
                self.worker = _Worker(self._work)
                return None
            except OSError as error:
                served, why = None, ("failure", f"a process could not be started: {error}")
        self._failed = self._failed + 1 if served is None else 0
        self._soon = self._soon + 1 if served is None or monotonic() - served < _SOON else 0
        self.pause = _PAUSES[min(self._soon, len(_PAUSES) - 1)]
        self.worker, self.due = None, monotonic() + self.pause
        return why


class _Worker:
    """A process that was started.

    Args:
        work: what it does.

    Attributes:
        process: as multiprocessing has it.
        line: there is something to read when it serves, and when it has ended.
        since: when it began to serve, by the monotonic clock.

    Raises:
        OSError: it cannot be started.
    """

    def __init__(self, work: Work) -> None:
        context = get_context("spawn")  # a fork would copy locks, threads and connections
        self.line, theirs = context.Pipe()
        self.process = context.Process(target=_serve, args=(work, theirs), name="robustrag-serve", daemon=True)
        self.since: float | None = None
        with theirs, _interrupts_held():
            self.process.start()

    def look(self) -> Why | None:
        """Notice that it serves. Says why it has ended, if so."""
        if not self.line.poll():
            return None
        try:
            said: Why | None = self.line.recv()
        except (EOFError, OSError):
            before = "" if self.since else " before it served"
            return "failure", f"a process ended with code {self._exit_code()}{before}"
        if said is None:
            self.since = monotonic()
        else:
            self._exit_code()
        return said

    def _exit_code(self) -> int | None:
        """Of a process that is about to end, if it was not for its threads."""
        self.process.join(_ENDING)
        self.process.kill()
        self.process.join()
        return self.process.exitcode


def _serve(work: Work, line: Connection) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all processes; the first one tells the others
    signal.signal(signal.SIGTERM, _end)  # uvicorn sends it again when it has finished
    _let_interrupts_through()
    work(Ready(line))


def _end(*_: object) -> None:
    """End with everything cleaned up that a killed process leaves behind, such as semaphores."""
    raise SystemExit(128 + signal.SIGTERM)


@contextmanager
def _told_to_stop() -> Iterator[Connection]:
    """Gives what SIGINT and SIGTERM are written to; also where a shell has its background ignore SIGINT."""
    read, write = Pipe(duplex=False)
    signals = signal.SIGINT, signal.SIGTERM
    with read, write:
        before = [signal.signal(told, lambda told, _: write.send(told)) for told in signals]
        try:
            yield read
        finally:
            for told, handler in zip(signals, before, strict=True):
                signal.signal(told, handler)


@contextmanager
def _interrupts_held() -> Iterator[None]:
    """A process that is started meanwhile takes none until it lets them through: it would end with a traceback."""
    if os.name == "posix":
        resource_tracker.ensure_running()  # which lets them through when it starts
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        _let_interrupts_through()


def _let_interrupts_through() -> None:
    if os.name == "posix":
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
