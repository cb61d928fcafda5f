"""Functions that are probed: `python:tests.cli.probed:steady`."""

from __future__ import annotations

import itertools

_CALLS = itertools.count()


def steady(prompt: str) -> str:
    """The same reply each time."""
    return f"reply of {len(prompt)} characters"


def drifting(prompt: str) -> str:
    """Now and then another reply, with something for the terminal in it."""
    return "reply \x1b[31mtwo" if next(_CALLS) % 3 == 0 else "reply one"


def broken(prompt: str) -> str:
    """No reply at all."""
    raise ValueError("no such model")
