"""Interleaved, repeated timing: ratios between things that ran side by side."""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

Work = Callable[[], object]


@dataclass(frozen=True)
class Clock:
    """A clock that is read before and after a piece of work.

    On a GPU, wall time once the device has finished. On a CPU, the time that this process spent computing, which other
    processes on the machine disturb less than wall time; with one thread the two agree on an idle machine.
    """

    device: str

    def read(self) -> float:
        """Return the time in seconds."""
        if self.device != "cuda":
            return time.process_time()
        import torch

        torch.cuda.synchronize()
        return time.perf_counter()


def interleave(cases: Mapping[str, Work], repeats: int, clock: Clock) -> dict[str, list[float]]:
    """Return the seconds per case and round. Every round runs every case once; a first round is not counted."""
    taken: dict[str, list[float]] = {name: [] for name in cases}
    for turn in range(repeats + 1):
        for name, case in cases.items():
            start = clock.read()
            case()
            seconds = clock.read() - start
            print(f"  {name}: {seconds:.3f} s{'' if turn else ' (not counted)'}", file=sys.stderr, flush=True)
            if turn:
                taken[name].append(seconds)
    return taken


def per_round(seconds: Mapping[str, Sequence[float]], one: str, other: str) -> list[float]:
    """Return the ratio of two cases in each round."""
    return [a / b for a, b in zip(seconds[one], seconds[other], strict=True)]


def summary(values: Sequence[float]) -> dict[str, float]:
    """Return median and extremes."""
    return {"median": statistics.median(values), "min": min(values), "max": max(values)}
