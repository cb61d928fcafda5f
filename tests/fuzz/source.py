"""The source of a fuzz target's input: one primitive, so that any engine can provide it."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import TypeVar

Choice = TypeVar("Choice")


class Source:
    """A stream of choices that makes an input.

    Args:
        below: gives a whole number from 0 to n - 1.
        stretch: how often every text is repeated; for finding out how the cost grows with the size.
    """

    def __init__(self, below: Callable[[int], int], *, stretch: int = 1) -> None:
        self.below = below
        self.stretch = stretch
        self.drawn: list[str | bytes] = []  # shown with a failure
        self.size = 0  # characters and bytes drawn

    @classmethod
    def of(cls, seed: str, *, stretch: int = 1) -> Source:
        """The input of this seed, the same on every machine."""
        return cls(random.Random(seed)._randbelow, stretch=stretch)  # type: ignore[attr-defined]

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
            self.size += len(made)
        return made
