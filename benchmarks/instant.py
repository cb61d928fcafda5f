"""A model without weights that answers at once, with replies that nobody has read before."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass, field
from itertools import cycle

QUESTION = "Who built the bridge?"
_ACCOUNT = "Account "
PASSAGES = [f"{_ACCOUNT}{number}: what was said about the bridge in year {1900 + number}." for number in range(10)]
METHODS = ("keyword", "consensus", "voting")
CHOICES = ["Bo Ek", "Ada Holm", "Ivo Lund"]

_WORDINGS = (
    "{}",
    "It is {}.",
    "The answer is {}.",
    "The bridge was built by {} in 1923.",
    "According to the text, {} has been the owner since 1987.",
    "{} won the Harbour Cup.",
    "About 15 percent of the workers left with {}.",
    "The highest mountain of the region is {}, at 2,849 m.",
    "He met {} on 3 May 2021 because of a scandal.",
    "{}, on the river Seine",
)
_IN_TURN = cycle(_WORDINGS)
_SYLLABLES = ["ba", "ke", "li", "mo", "ru", "sen", "tor", "val", "win", "zan"]
_WARM_UP, _QUESTIONS = 5, 20  # questions of a round


@dataclass
class Instant:
    """A model that gives reply i to a prompt with account i in it, and the last reply to any other.

    Attributes:
        replies: eleven; others for every question.
        asked: how often it was asked.
    """

    replies: list[str] = field(default_factory=list)
    asked: int = 0

    def said(self, prompt: str) -> str:
        """Return the reply to a prompt."""
        self.asked += 1
        place = prompt.find(_ACCOUNT)
        return self.replies[-1 if place < 0 else int(prompt[place + len(_ACCOUNT)])]


def names() -> Iterator[str]:
    """Yield names without end or repeats."""
    rng, given = random.Random(0), set[str]()
    while True:
        name = " ".join("".join(rng.choices(_SYLLABLES, k=3)).title() for _ in range(2))
        if name not in given:
            given.add(name)
            yield name


def replies_of(fresh: Iterator[str], *, equal: bool = False) -> list[str]:
    """Return ten short replies about a new name, and the final one; equal ones take each wording in turn."""
    name = next(fresh)
    ten = [next(_IN_TURN).format(name)] * 10 if equal else [wording.format(name) for wording in _WORDINGS]
    return [*ten, "Bo Ek"]


def milliseconds(
    instant: Instant, works: list[Callable[[], object]], fresh: Iterator[str], *, equal: bool
) -> list[float]:
    """Measure the computing time per question of each of these, in turns; the first few questions do not count.

    Args:
        instant: the model that all of them ask.
        works: each answers one question, or returns a coroutine that does.
        fresh: `names()`.
        equal: whether all replies to a question are equal.
    """
    taken = [0.0] * len(works)
    loop = asyncio.new_event_loop()
    try:
        for number in range(_WARM_UP + _QUESTIONS):
            instant.replies = replies_of(fresh, equal=equal)
            for at, work in enumerate(works):
                start = time.process_time()
                made = work()
                if isinstance(made, Coroutine):
                    loop.run_until_complete(made)
                taken[at] += (time.process_time() - start) * (number >= _WARM_UP)
    finally:
        loop.run_until_complete(loop.shutdown_default_executor())
        loop.close()
    return [1000 * seconds / _QUESTIONS for seconds in taken]
