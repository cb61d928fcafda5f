"""Our chain and the framework's own calls, in turns: ratios of computing time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass, field

from benchmarks.extraction import names, replies_of
from benchmarks.inference import Bench
from benchmarks.results import Ratio, Target, said

QUESTION = "Who built the bridge?"
_ACCOUNT = "Account "
PASSAGES = [f"{_ACCOUNT}{number}: what was said about the bridge in year {1900 + number}." for number in range(10)]
METHODS = ("keyword", "consensus", "voting")
CHOICES = ["Bo Ek", "Ada Holm", "Ivo Lund"]

_WARM_UP = 5  # questions
_QUESTIONS = 10  # per round
_BOUND: dict[str, Target] = {"cpu": ("<=", 2.0), "cuda": ("<=", 2.0)}


@dataclass
class Instant:
    """What a model without weights says at once: to a prompt with account i in it reply i, to any other the last one.

    Attributes:
        replies: eleven; others for every question.
        asked: how often it was asked.
    """

    replies: list[str] = field(default_factory=list)
    asked: int = 0

    def said(self, prompt: str) -> str:
        """The reply to a prompt."""
        self.asked += 1
        place = prompt.find(_ACCOUNT)
        return self.replies[-1 if place < 0 else int(prompt[place + len(_ACCOUNT)])]


@dataclass(frozen=True)
class Pair:
    """An answer of ours, and what it is compared with; both synchronous or both asynchronous.

    Attributes:
        name: what is compared.
        instant: what both ask.
        ours: answers.
        theirs: makes the same calls.
    """

    name: str
    instant: Instant
    ours: Callable[[], object]
    theirs: Callable[[], object]


def ratios(bench: Bench, pairs: list[Pair]) -> list[Ratio]:
    """Each pair with ten different replies, which nobody has read before, and with ten equal ones."""
    fresh = names()
    return [
        said(_ratio(bench, pair, fresh, replies, equal=equal))
        for pair in pairs
        for replies, equal in (("ten different replies", False), ("ten equal ones", True))
    ]


def _ratio(bench: Bench, pair: Pair, fresh: Iterator[str], replies: str, *, equal: bool) -> Ratio:
    _milliseconds(pair, fresh, _WARM_UP, equal=equal)
    rounds = [_milliseconds(pair, fresh, _QUESTIONS, equal=equal) for _ in range(max(3, bench.repeats))]
    ours, theirs = (sorted(taken)[len(rounds) // 2] for taken in zip(*rounds, strict=True))
    note = f"{ours:.1f} ms of computing per question / {theirs:.1f} ms"
    return Ratio(f"{pair.name}, {replies}", tuple(a / b for a, b in rounds), _BOUND, note)


def _milliseconds(pair: Pair, fresh: Iterator[str], questions: int, *, equal: bool) -> tuple[float, float]:
    """Computing time per question, ours and theirs: one question after another, in turns."""
    taken = {pair.ours: 0.0, pair.theirs: 0.0}
    loop = asyncio.new_event_loop()
    try:
        for _ in range(questions):
            pair.instant.replies = [*replies_of(fresh, equal=equal), "Bo Ek"]
            for work in taken:
                start = time.process_time()
                made = work()
                if isinstance(made, Coroutine):
                    loop.run_until_complete(made)
                taken[work] += time.process_time() - start
    finally:
        loop.run_until_complete(loop.shutdown_default_executor())
        loop.close()
    return 1000 * taken[pair.ours] / questions, 1000 * taken[pair.theirs] / questions
