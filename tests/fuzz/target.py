"""A fuzz target."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tests.fuzz.source import Source


@dataclass(frozen=True)
class Target:
    """One place where hostile input is read.

    Attributes:
        name: what it is called in reports and in the names of failures.
        attack: makes an input, gives it to the code, and raises unless everything holds that must.
        share: how many inputs it gets, compared with the others; slow ones get fewer.
    """

    name: str
    attack: Callable[[Source], None]
    share: int = 10
