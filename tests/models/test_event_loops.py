"""The loop of synchronous callers never waits for itself, and what each loop has of its own is freed with it."""

from __future__ import annotations

import asyncio
import gc
import threading
import weakref
from collections.abc import AsyncGenerator, Iterator

from robustrag_integrations import CallableModel, KeywordAggregation
from robustrag_integrations.models.event_loops import LoopThread, PerLoop
from tests.helpers.scripted import BARE, split


async def _numbers() -> AsyncGenerator[int, None]:
    for number in range(9):
        yield number


def test_an_iterator_may_be_closed_in_the_thread_of_its_loop() -> None:
    thread = LoopThread()
    numbers = thread.iterate(_numbers())
    assert next(numbers) == 0

    async def close(dropped: Iterator[int]) -> str:
        dropped.close()  # type: ignore[attr-defined]
        return "closed"

    said: list[str] = []
    caller = threading.Thread(target=lambda: said.append(thread.run(close(numbers))), daemon=True)
    caller.start()
    caller.join(10)
    assert said == ["closed"]
    assert list(thread.iterate(_numbers())) == list(range(9))
    thread.close()


def test_a_loop_has_one_and_another_loop_another() -> None:
    made: PerLoop[list[int]] = PerLoop(list)

    async def twice() -> tuple[list[int], list[int]]:
        return made.here(), made.here()

    (first, again), (other, _) = asyncio.run(twice()), asyncio.run(twice())
    assert first is again
    assert other is not first


def test_loops_in_which_answers_waited_for_a_slot_are_freed() -> None:
    async def say(prompt: str) -> str:
        await asyncio.sleep(0)
        return "paris"

    defense = KeywordAggregation(CallableModel(async_fn=say, max_concurrency=2), extractor=split, prompts=BARE)
    loops = []

    async def ask() -> str:
        loops.append(weakref.ref(asyncio.get_running_loop()))
        return (await defense.aanswer("q", [f"p{i}" for i in range(6)])).text

    for _ in range(5):
        assert asyncio.run(ask()) == "paris"
    gc.collect()
    assert sum(loop() is not None for loop in loops) <= 1
