"""How the cost of an input grows with its size, which says more than its time on one machine."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

from tests.fuzz.source import Source
from tests.fuzz.target import Target

MEASURABLE = 0.02  # seconds of CPU time below which a growth says nothing
_STRETCHES = (1, 4, 16, 64)


@dataclass(frozen=True)
class Growth:
    """The cost of one input as all of its texts are repeated more often.

    Attributes:
        target: what read it.
        key: the input.
        sizes: characters and bytes of the two largest inputs that were tried.
        costs: CPU seconds that they took.
    """

    target: str
    key: str
    sizes: tuple[int, int]
    costs: tuple[float, float]

    @property
    def exponent(self) -> float:
        """p, if the cost grows as size to the power of p: 1 is linear, 2 is quadratic."""
        return math.log(self.costs[1] / self.costs[0]) / math.log(self.sizes[1] / self.sizes[0])


def growth(target: Target, key: str, *, largest: int = 300_000) -> Growth | None:
    """Measure one input; None if it is too cheap to measure or has no text to repeat."""
    seen: list[tuple[int, float]] = []
    for stretch in _STRETCHES:
        size, cost = _cost(target, key, stretch)
        if size > largest:
            break
        if not seen or size > 2 * seen[-1][0]:
            seen.append((size, cost))
        if cost > 2:
            break
    if len(seen) < 2 or seen[-1][1] < MEASURABLE or seen[-2][1] <= 0:
        return None
    (small, low), (large, high) = seen[-2:]
    return Growth(target.name, key, (small, large), (low, high))


def _cost(target: Target, key: str, stretch: int) -> tuple[int, float]:
    best, size = math.inf, 0
    for _ in range(3):
        source = Source.of(f"{target.name}:{key}", stretch=stretch)
        began = time.process_time()
        try:
            target.attack(source)
        except Exception:
            return source.size, time.process_time() - began
        best, size = min(best, time.process_time() - began), source.size
        if best > 0.5:
            break
    return size, best
