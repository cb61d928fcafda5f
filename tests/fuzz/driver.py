"""Running many inputs: which target comes next, its outcome, and what is recorded of a failure."""

from __future__ import annotations

import json
import signal
import time
import traceback
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.fuzz.source import Source
from tests.fuzz.target import Target

HANG = 60.0  # seconds of CPU time after which one input counts as endless


class Endless(Exception):
    """One input took longer than any input may."""


@dataclass(frozen=True)
class Failure:
    """An input that broke something."""

    target: str
    key: str
    error: str
    trace: str
    drawn: tuple[str, ...]

    @property
    def kind(self) -> str:
        """What failures of the same cause share: the target and the place of the error."""
        places = [line.strip() for line in self.trace.splitlines() if line.lstrip().startswith("File ")]
        return f"{self.target}: {self.error.split(':')[0]} at {places[-1] if places else 'nowhere'}"


def schedule(targets: Sequence[Target]) -> tuple[Target, ...]:
    """One round: each target as often as its share says, spread evenly."""
    places = [((2 * n + 1) / (2 * t.share), t.name, t) for t in targets for n in range(t.share)]
    return tuple(target for _, _, target in sorted(places, key=lambda place: place[:2]))


def attempt(target: Target, key: str, *, stretch: int = 1) -> Failure | None:
    """Give one target the input of this key."""
    source = Source.of(f"{target.name}:{key}", stretch=stretch)
    try:
        target.attack(source)
    except (Exception, RecursionError) as error:
        drawn = tuple(ascii(d)[:2000] for d in source.drawn[:50])
        said = f"{type(error).__name__}: {ascii(str(error))[:500]}"
        return Failure(target.name, key, said, traceback.format_exc(), drawn)
    return None


@contextmanager
def watched(seconds: float = HANG) -> Iterator[None]:
    """Raise Endless in the block once it has used this much CPU time."""

    def stop(*_: Any) -> None:
        raise Endless(f"no end after {seconds:g} s of CPU time")

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


@dataclass
class Campaign:
    """A run over all targets that can be stopped and resumed.

    Attributes:
        targets: what is attacked.
        seed: what all inputs come from.
        done: how many inputs were given so far; the next one is number `done`.
        failures: by kind, the first of each.
        seconds: CPU time per target.
        slowest: per target the CPU time of its slowest input and that input's key.
        steep: inputs whose cost grew faster than their size.
    """

    targets: Sequence[Target]
    seed: int = 0
    done: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    failures: dict[str, Failure] = field(default_factory=dict)
    failed: Counter[str] = field(default_factory=Counter)
    seconds: Counter[str] = field(default_factory=Counter)
    slowest: dict[str, tuple[float, str]] = field(default_factory=dict)
    steep: list[str] = field(default_factory=list)

    def run(self, inputs: int) -> Iterator[int]:
        """Run inputs until there were this many in all; yields after each input how many are done."""
        round_ = schedule(self.targets)
        while self.done < inputs:
            target = round_[self.done % len(round_)]
            self._one(target, f"{self.seed}:{self.done}")
            self.done += 1
            yield self.done

    def _one(self, target: Target, key: str) -> None:
        began = time.process_time()
        failure = attempt(target, key)
        took = time.process_time() - began
        self.counts[target.name] += 1
        self.seconds[target.name] += took  # type: ignore[assignment]
        if took > self.slowest.get(target.name, (0.0, ""))[0]:
            self.slowest[target.name] = (took, key)
        if failure is not None:
            self.failed[failure.kind] += 1
            self.failures.setdefault(failure.kind, failure)

    def save(self, path: Path) -> None:
        """Save the state, so that `load` can resume."""
        state = {
            "seed": self.seed,
            "done": self.done,
            "counts": self.counts,
            "failed": self.failed,
            "seconds": self.seconds,
            "slowest": self.slowest,
            "steep": self.steep,
            "failures": [vars(f) for f in self.failures.values()],
        }
        fresh = path.with_suffix(".new")
        fresh.write_text(json.dumps(state, indent=1), encoding="utf-8")
        fresh.replace(path)

    @classmethod
    def load(cls, path: Path, targets: Sequence[Target]) -> Campaign:
        """The campaign that was saved to this file."""
        state = json.loads(path.read_text(encoding="utf-8"))
        failures = [Failure(**{**f, "drawn": tuple(f["drawn"])}) for f in state["failures"]]
        return cls(
            targets,
            state["seed"],
            state["done"],
            Counter(state["counts"]),
            {f.kind: f for f in failures},
            Counter(state["failed"]),
            Counter(state["seconds"]),
            {name: (took, key) for name, (took, key) in state["slowest"].items()},
            state["steep"],
        )
