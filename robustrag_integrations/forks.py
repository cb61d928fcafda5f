"""Locks in processes that fork: servers that preload an application fork their workers while other threads answer.

A child process has none of its parent's other threads, but it inherits every lock that they held, and no thread is
left to release it.
What a lock protects decides what to do about that: state that must not be seen half changed is left alone while a fork
goes on (`lock_held_over_forks`); anything else is made anew in the child (`renew_in_children`).
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable
from typing import Any, TypeVar

Owner = TypeVar("Owner")

_PATIENCE = 0.1  # seconds of waiting for one lock while others are held

_held: list[weakref.ref[Any]] = []
_renewed: list[tuple[weakref.ref[Any], Callable[[Any], None]]] = []
_listing = threading.Lock()  # held while something joins these lists, and over forks
_mine = threading.local()  # the locks that this thread took for the fork it is about to make


def lock_held_over_forks() -> threading.RLock:
    """Return a lock that nobody holds while the process forks: forking waits for the thread that does."""
    lock = threading.RLock()
    with _listing:
        _held[:] = [reference for reference in _held if reference() is not None]
        _held.append(weakref.ref(lock))
    return lock


class UncutByForks(threading.local):
    """A `with` block of each thread's own that no fork falls into; threads do not wait for each other.

    For code that holds locks of a library's own, such as those of a BLAS around its buffers.
    """

    def __init__(self) -> None:
        self._lock = lock_held_over_forks()

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *raised: object) -> None:
        self._lock.release()


def renew_in_children(owner: Owner, renew: Callable[[Owner], None]) -> None:
    """Call `renew(owner)` in every child process, before it does anything else; `owner` is held weakly."""
    with _listing:
        _renewed[:] = [entry for entry in _renewed if entry[0]() is not None]
        _renewed.append((weakref.ref(owner), renew))


def _before() -> None:
    """Take all locks. Another thread may hold one and wait for a second: what was taken is given back meanwhile."""
    _mine.taken = []
    while (busy := _take_all()) is not None:
        _after_in_parent()
        busy.acquire()
        _mine.taken = [busy]


def _take_all() -> Any:
    """The first lock that could not be had in time; None: all are taken, and none can be made until they are free."""
    while True:
        for lock in _not_taken():
            if not lock.acquire(timeout=_PATIENCE):
                return lock
            _mine.taken.append(lock)
        _listing.acquire()
        if not _not_taken():  # another thread may have made one meanwhile
            _mine.taken.append(_listing)
            return None
        _listing.release()


def _not_taken() -> list[Any]:
    locks = [lock for reference in list(_held) if (lock := reference()) is not None]
    return [lock for lock in locks if lock not in _mine.taken]


def _after_in_parent() -> None:
    for lock in reversed(_mine.taken):
        lock.release()
    _mine.taken = []


def _after_in_child() -> None:
    _after_in_parent()
    for reference, renew in _renewed:
        owner = reference()
        if owner is not None:
            renew(owner)


if hasattr(os, "register_at_fork"):  # not on Windows, which does not fork
    os.register_at_fork(before=_before, after_in_parent=_after_in_parent, after_in_child=_after_in_child)
