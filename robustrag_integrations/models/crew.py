"""Threads that wait for the next call when one is over: starting a thread costs more than an answer's bookkeeping."""

from __future__ import annotations

import threading
from collections.abc import Callable

from robustrag_integrations.forks import lock_held_over_forks, renew_in_children

_PATIENCE = 10.0  # seconds after which a thread without anything to do ends


class _Helper:
    """One waiting thread: what it is to do next, and the lock that is released when that is known."""

    def __init__(self) -> None:
        self.task: Callable[[], None] | None = None
        self.called = threading.Lock()
        self.called.acquire()


class Crew:
    """As many daemon threads as there are tasks at a time; those without one are used again, or end after a while."""

    def __init__(self) -> None:
        self._lock = lock_held_over_forks()
        self._idle: list[_Helper] = []
        renew_in_children(self, Crew._without_threads)

    def send(self, task: Callable[[], None]) -> None:
        """Have a thread call this function, which must not raise; the caller goes on at once."""
        with self._lock:
            helper = self._idle.pop() if self._idle else None
        if helper is None:
            threading.Thread(target=self._work, args=(task,), name="robustrag", daemon=True).start()
            return
        helper.task = task
        helper.called.release()

    def dismiss(self) -> None:
        """End the threads that wait for something to do, at once."""
        with self._lock:
            idle, self._idle = self._idle, []
        for helper in idle:
            helper.called.release()

    def _work(self, task: Callable[[], None] | None) -> None:
        helper = _Helper()
        while task is not None:
            task()
            task = None
            with self._lock:
                self._idle.append(helper)
            if not helper.called.acquire(timeout=_PATIENCE):
                with self._lock:
                    if helper in self._idle:
                        self._idle.remove(helper)
                        return
                helper.called.acquire()  # it was chosen just now
            task, helper.task = helper.task, None

    def _without_threads(self) -> None:
        """In a child process, which has none of its parent's threads."""
        self._idle = []


CREW = Crew()
"""Of this process; there is nothing in it that belongs to one model or answer."""
