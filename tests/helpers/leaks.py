"""Nothing may be left behind: no thread, no open file or socket."""

from __future__ import annotations

import asyncio
import gc
import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from robustrag_integrations.models.threads import BACKGROUND, THREADS

_PATIENCE = 20  # seconds, on a machine with better things to do


def open_files() -> Counter[str]:
    """What this process has open, by kind; empty where the system does not tell."""
    found: Counter[str] = Counter()
    folder = Path("/proc/self/fd")
    for name in os.listdir(folder) if folder.exists() else []:
        try:
            found[os.readlink(folder / name).partition(":")[0]] += 1
        except OSError:  # noqa: PERF203 - the one that this listing used
            continue
    return found


@contextmanager
def nothing_left() -> Iterator[None]:
    """Fail when threads or open files have come to stay; garbage is looked for in what came after this began."""
    BACKGROUND.run(asyncio.sleep(0))  # its loop stays
    threads, files = set(threading.enumerate()), open_files()
    gc.freeze()  # what the whole suite has loaded by then takes half a second to go through
    try:
        yield
        _wait_for_others_to_go(threads, files)
    finally:
        gc.unfreeze()


def _wait_for_others_to_go(threads: set[threading.Thread], files: Counter[str]) -> None:
    deadline = time.monotonic() + _PATIENCE
    while True:
        THREADS.call(None)  # they wait for the next question, and would end by themselves
        more_threads = [t.name for t in threading.enumerate() if t not in threads]
        more_files = open_files() - files
        if not more_threads and not more_files:
            return
        gc.collect()
        if time.monotonic() > deadline:
            pytest.fail(f"left behind: threads {more_threads}, files {dict(more_files)}")
        time.sleep(0.02)


def eventually(holds: Callable[[], bool], patience: float = _PATIENCE) -> bool:
    """Wait until something holds, as long as patience lasts, and return whether it does."""
    deadline = time.monotonic() + patience
    while not holds() and time.monotonic() < deadline:
        time.sleep(0.01)
    return holds()
