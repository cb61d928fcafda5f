"""Benchmarks of the overhead around the model: over a simulated API of fixed latency, and in frameworks."""

from __future__ import annotations

import asyncio
import gc
import os
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from typing import Any

from benchmarks.inference import Bench
from benchmarks.instant import CHOICES, PASSAGES, QUESTION, Instant, milliseconds, names
from benchmarks.results import Ratio, Target, said
from robustrag_integrations import CallableModel, KeywordAggregation
from robustrag_integrations.defenses.registry import METHODS, VANILLA

_LATENCY = 0.1  # seconds of a simulated call
_PASSAGES = [f"Account {i}: the bridge was built by Bo Ek." for i in range(10)]
_MANY, _AT_ONCE = 1000, 100


def ratios(bench: Bench) -> list[Ratio]:
    """Measure wall time, whatever the bench's clock, where waiting is simulated; in frameworks computing time."""
    from benchmarks import frameworks

    return [
        *_waiting(bench),
        *_at_once(),
        *questions(bench),
        *frameworks.ratios(bench),
    ]


def _waiting(bench: Bench) -> Iterator[Ratio]:
    bound: dict[str, Target] = {"cpu": ("<=", 20.0), "cuda": ("<=", 20.0)}
    name, note = "keyword k=10 at concurrency 10: ms above 2.0 calls", f"calls of {1000 * _LATENCY:.0f} ms"
    for style, work in (("async", _answer), ("threads", _answer_in_threads)):
        yield said(Ratio(f"{name}, {style}", tuple(_overhead(work) for _ in range(bench.repeats)), bound, note))
    computed = tuple(_overhead(_answer, computing=True) for _ in range(bench.repeats))
    note = "what is left of the above on an idle core"
    yield said(Ratio("keyword k=10: ms of computing per answer, async", computed, {}, note))


def _at_once() -> Iterator[Ratio]:
    left, elapsed = _many()
    none: dict[str, Target] = {"cpu": ("<=", 0.0), "cuda": ("<=", 0.0)}
    yield said(
        Ratio(f"threads, tasks and files left by 1,000 questions at concurrency {_AT_ONCE}", (float(left),), none)
    )
    ideal = _MANY / _AT_ONCE * 2 * _LATENCY
    yield said(Ratio(f"1,000 questions at concurrency {_AT_ONCE} / waiting alone", (elapsed / ideal,)))


def questions(bench: Bench) -> Iterator[Ratio]:
    """Yield the milliseconds that this process computes per question; no name was read before."""
    fresh = names()
    for method in (VANILLA, *(METHODS[name] for name in ("keyword", "consensus", "voting"))):
        instant = Instant()

        async def reply(prompt: str, instant: Instant = instant) -> str:
            return instant.said(prompt)

        options: dict[str, Any] = {"choices": CHOICES} if method.name == "voting" else {}
        task = "multiple_choice" if options else "short_answer"
        models = CallableModel(instant.said), CallableModel(async_fn=reply)
        sync, other = (method.build(model, task=task) for model in models)
        ways: dict[str, Callable[[], object]] = {
            "sync": partial(sync.answer, QUESTION, PASSAGES, **options),
            "async": partial(other.aanswer, QUESTION, PASSAGES, **options),
        }
        for replies, equal, bound in (("ten different replies", False, 25.0), ("ten equal ones", True, 25.0)):
            rounds = [milliseconds(instant, list(ways.values()), fresh, equal=equal) for _ in range(bench.repeats)]
            for way, taken in zip(ways, zip(*rounds, strict=True), strict=True):
                target: dict[str, Target] = {"cpu": ("<=", bound), "cuda": ("<=", bound)}
                yield said(Ratio(f"core {method.name}, {way}, {replies}: ms per question", taken, target))


def _said(prompt: str) -> str:
    return "Bo Ek"


async def _call(prompt: str) -> str:
    await asyncio.sleep(_LATENCY)
    return _said(prompt)


def _blocking_call(prompt: str) -> str:
    time.sleep(_LATENCY)
    return _said(prompt)


def _defense(model: CallableModel) -> KeywordAggregation:
    return KeywordAggregation(model, extractor=lambda text: set(text.split()))


async def _answer() -> None:
    await _defense(CallableModel(async_fn=_call, max_concurrency=10)).aanswer("Who built it?", _PASSAGES)


async def _answer_in_threads() -> None:
    defense = _defense(CallableModel(_blocking_call, max_concurrency=10))
    await asyncio.to_thread(defense.answer, "Who built it?", _PASSAGES)


def _overhead(work: Callable[[], Awaitable[None]], *, computing: bool = False) -> float:
    """Return the milliseconds above the two rounds of calls that the algorithm waits for; after a first answer.

    With `computing`, the milliseconds that this process computes: the same thing, but for what other processes take.
    """
    clock = time.process_time if computing else time.perf_counter
    waiting = 0.0 if computing else 2 * _LATENCY

    async def timed() -> float:
        await work()
        start = clock()
        await work()
        return clock() - start

    return 1000 * (asyncio.run(timed()) - waiting)


def _many() -> tuple[int, float]:
    """Return the number of leftovers after many questions in one event loop, and the time that they took."""

    async def ask_all() -> tuple[int, float]:
        defense = _defense(CallableModel(async_fn=_call, max_concurrency=10 * _AT_ONCE))
        slots = asyncio.Semaphore(_AT_ONCE)

        async def ask(number: int) -> None:
            async with slots:
                answer = await defense.aanswer(f"Who built bridge {number}?", _PASSAGES)
            if answer.text != "Bo Ek":
                raise AssertionError(f"question {number} got {answer.text!r}")

        await ask(0)  # things made once and kept stay, such as the loop's worker threads up to their number
        await asyncio.gather(*(ask(i) for i in range(_AT_ONCE)))
        before, start = _in_use(), time.perf_counter()
        await asyncio.gather(*(ask(i) for i in range(_MANY)))
        return max(0, _in_use() - before), time.perf_counter() - start

    return asyncio.run(ask_all())


def _in_use() -> int:
    """Count the threads, tasks and open files of this process."""
    gc.collect()
    files = len(os.listdir("/proc/self/fd")) if sys.platform == "linux" else 0
    return threading.active_count() + len(asyncio.all_tasks()) + files
