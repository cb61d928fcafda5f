"""A fuzz target, and the source of its input: one primitive, so that any engine can provide it."""

from __future__ import annotations

import atexit
import os
import random
import shutil
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TypeVar

Choice = TypeVar("Choice")


class Source:
    """A stream of choices that makes an input, the same for a seed on every machine."""

    def __init__(self, seed: str) -> None:
        self.below: Callable[[int], int] = random.Random(seed)._randbelow  # type: ignore[attr-defined]
        self.drawn: list[str | bytes] = []  # shown with a failure

    def chance(self, one_in: int) -> bool:
        """True with a probability of 1 / one_in."""
        return self.below(one_in) == 0

    def between(self, least: int, most: int) -> int:
        """A whole number in this range."""
        return least + self.below(most - least + 1)

    def pick(self, options: Sequence[Choice]) -> Choice:
        """One of them."""
        return options[self.below(len(options))]

    def some(self, make: Callable[[], Choice], most: int) -> list[Choice]:
        """Up to `most` of them."""
        return [make() for _ in range(self.below(most + 1))]

    def keep(self, made: Choice) -> Choice:
        """Record what was drawn."""
        if isinstance(made, (str, bytes)):
            self.drawn.append(made)
        return made


@dataclass(frozen=True)
class Target:
    """One place where hostile input is read: makes an input, gives it to the code, and raises unless all holds.

    `share` is how many inputs it gets, compared with the others; slow ones get fewer.
    """

    name: str
    attack: Callable[[Source], None]
    share: int = 10


@cache
def scratch() -> Path:
    """A folder of this process, in memory where possible."""
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    folder = Path(tempfile.mkdtemp(prefix="robustrag-fuzz-", dir=memory))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder
