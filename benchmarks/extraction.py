"""What it costs to read replies: keywords and abstentions of ten replies, and 64 questions in flight."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import cycle

from benchmarks.inference import Bench
from benchmarks.results import Ratio, Target, said
from robustrag_integrations import CallableModel, KeywordAggregation, SpacyKeywordExtractor
from robustrag_integrations.defenses.agreement.reader import KeywordReader
from robustrag_integrations.models.base import Response
from robustrag_integrations.plans.asking import read_responses

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
_QUESTIONS = 20  # per round
_IN_FLIGHT = 64


def ratios(bench: Bench) -> list[Ratio]:
    """Milliseconds that this process computes; whatever is not said to be equal was never read before."""
    fresh = names()
    extract, reader = SpacyKeywordExtractor(), KeywordReader.of(None, 1, None, "abstain")

    def extracted(replies: Sequence[str]) -> None:
        for reply in replies:
            extract(reply)

    def read(replies: Sequence[str]) -> None:
        responses = [Response(reply) for reply in replies]
        reader.read_ahead(responses)
        read_responses(responses, reader.keywords_of)

    def measured(work: Callable[[Sequence[str]], None], *, equal: bool = False) -> tuple[float, ...]:
        return tuple(_milliseconds(work, fresh, equal=equal) for _ in range(bench.repeats + 1))[1:]

    bound: dict[str, Target] = {"cpu": ("<=", 3.0), "cuda": ("<=", 3.0)}
    none_before = "no reply was read before"
    return [
        said(Ratio("keywords of ten different replies: ms", measured(extracted), bound, none_before)),
        said(Ratio("ten different replies, abstentions too: ms", measured(read))),
        said(
            Ratio(
                "ten equal replies, abstentions too: ms", measured(read, equal=True), dict.fromkeys(bound, ("<=", 1.0))
            )
        ),
        said(
            Ratio(
                f"{_IN_FLIGHT} questions in flight: ms of computing per question",
                tuple(_in_flight(fresh) for _ in range(bench.repeats)),
                note="keyword aggregation of ten different replies in threads, over a model that answers at once",
            )
        ),
    ]


def names() -> Iterator[str]:
    """Names without end, none of them twice."""
    rng, given = random.Random(0), set[str]()
    while True:
        name = " ".join("".join(rng.choices(_SYLLABLES, k=3)).title() for _ in range(2))
        if name not in given:
            given.add(name)
            yield name


def replies_of(fresh: Iterator[str], *, equal: bool = False) -> list[str]:
    """Ten short replies, about a name that was not there before; equal ones in each wording in turn."""
    name = next(fresh)
    return [next(_IN_TURN).format(name)] * 10 if equal else [wording.format(name) for wording in _WORDINGS]


def _milliseconds(work: Callable[[Sequence[str]], None], fresh: Iterator[str], *, equal: bool) -> float:
    questions = [replies_of(fresh, equal=equal) for _ in range(_QUESTIONS)]
    start = time.process_time()
    for replies in questions:
        work(replies)
    return 1000 * (time.process_time() - start) / _QUESTIONS


def _in_flight(fresh: Iterator[str]) -> float:
    asked = {f"question {number}": replies_of(fresh) for number in range(_IN_FLIGHT)}

    def model(prompt: str) -> str:
        question = next(question for question in asked if f"{question}?" in prompt)
        place = prompt.find("account ")
        return asked[question][int(prompt[place + 8])] if place >= 0 else asked[question][0]

    defense = KeywordAggregation(CallableModel(model, max_concurrency=_IN_FLIGHT), accept_sampling=True)
    passages = [f"account {number}" for number in range(10)]
    start = time.process_time()
    with ThreadPoolExecutor(_IN_FLIGHT) as pool:
        list(pool.map(lambda question: defense.answer(f"{question}?", passages), asked))
    return 1000 * (time.process_time() - start) / _IN_FLIGHT
