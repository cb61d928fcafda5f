"""What a whole question costs in the core: the public API with default settings, over a model that answers at once."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass
from typing import Any

from benchmarks.extraction import names, replies_of
from benchmarks.frameworks.side_by_side import CHOICES, PASSAGES, Instant
from benchmarks.inference import Bench
from benchmarks.results import Ratio, Target, said
from robustrag_integrations import CallableModel, ConsensusAggregation, KeywordAggregation, MajorityVoting, VanillaRAG

_DEFENSES: dict[str, Any] = {
    "keyword": KeywordAggregation,
    "consensus": ConsensusAggregation,
    "voting": MajorityVoting,
    "vanilla": VanillaRAG,
}
_WARM_UP, _QUESTIONS = 5, 20  # questions of a round
_DIFFERENT: dict[str, Target] = {"cpu": ("<=", 3.0), "cuda": ("<=", 3.0)}
_EQUAL: dict[str, Target] = {"cpu": ("<=", 1.0), "cuda": ("<=", 1.0)}


@dataclass(frozen=True)
class Asked:
    """Something that answers a question about ten passages, in one of two styles.

    Attributes:
        name: what it is.
        instant: the model.
        answer: answers this question; a coroutine where it is asynchronous.
    """

    name: str
    instant: Instant
    answer: Callable[[str], object]


def ratios(bench: Bench) -> list[Ratio]:
    """Milliseconds that this process computes per question; no question and no name was read before."""
    fresh = names()
    found = []
    for asked in [asked for method in _DEFENSES for asked in both_styles(method)]:
        for replies, equal, bound in (("ten different replies", False, _DIFFERENT), ("ten equal ones", True, _EQUAL)):
            rounds = tuple(milliseconds(asked, fresh, equal=equal) for _ in range(bench.repeats))
            found.append(said(Ratio(f"core {asked.name}, {replies}: ms per question", rounds, bound)))
    long = next(iter(both_styles("keyword", [f"{text} {_ninety_words(fresh)}" for text in PASSAGES])))
    rounds = tuple(milliseconds(long, fresh, equal=False) for _ in range(bench.repeats))
    return [*found, said(Ratio("core keyword, sync, ten different replies, passages of 100 words: ms", rounds))]


def both_styles(method: str, passages: list[str] = PASSAGES) -> Iterator[Asked]:
    """A method synchronous and asynchronous."""
    instant = Instant()

    async def reply(prompt: str) -> str:
        return instant.said(prompt)

    options = {"choices": CHOICES} if method == "voting" else {}
    sync, other = (_DEFENSES[method](model) for model in (CallableModel(instant.said), CallableModel(async_fn=reply)))
    yield Asked(f"{method}, sync", instant, lambda question: sync.answer(question, passages, **options))
    yield Asked(f"{method}, async", instant, lambda question: other.aanswer(question, passages, **options))


def milliseconds(asked: Asked, fresh: Iterator[str], questions: int = _QUESTIONS, *, equal: bool) -> float:
    """Computing time per question, one after another, after a few that do not count."""
    loop = asyncio.new_event_loop()
    took = 0.0
    try:
        for number in range(_WARM_UP + questions):
            replies = replies_of(fresh, equal=equal)
            asked.instant.replies = [*_lettered(replies, asked.name, equal=equal), replies[0]]
            question = f"Who built the bridge of {next(fresh)}?"
            start = time.process_time()
            made = asked.answer(question)
            if isinstance(made, Coroutine):
                loop.run_until_complete(made)
            took += (time.process_time() - start) * (number >= _WARM_UP)
    finally:
        loop.run_until_complete(loop.shutdown_default_executor())
        loop.close()
    return 1000 * took / questions


def _ninety_words(fresh: Iterator[str]) -> str:
    return " ".join(next(fresh) for _ in range(45))


def _lettered(replies: list[str], name: str, *, equal: bool) -> list[str]:
    """Replies that choose an option, where one is asked for."""
    if not name.startswith("voting"):
        return replies
    return [f"{'A' if equal else 'ABC'[number % 3]}. {reply}" for number, reply in enumerate(replies)]
