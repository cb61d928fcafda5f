"""Functions that are probed: `python:tests.cli.probed:steady`."""

from __future__ import annotations

import itertools
import threading
import time

_CALLS = itertools.count()
_LOCK = threading.Lock()
_now = 0
most_at_once = 0


def steady(prompt: str) -> str:
    """The same reply each time."""
    return f"reply of {len(prompt)} characters"


def drifting(prompt: str) -> str:
    """Now and then another reply, with something for the terminal in it."""
    return "reply \x1b[31mtwo" if next(_CALLS) % 3 == 0 else "reply one"


def broken(prompt: str) -> str:
    """No reply at all."""
    raise ValueError("no such model")


def together(prompt: str) -> str:
    """The same reply each time; counts how many calls are under way."""
    global _now, most_at_once
    with _LOCK:
        _now += 1
        most_at_once = max(most_at_once, _now)
    time.sleep(0.05)
    with _LOCK:
        _now -= 1
    return "fine"
