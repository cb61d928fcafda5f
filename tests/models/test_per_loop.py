"""What each event loop has of its own is freed with it."""

from __future__ import annotations

import asyncio
import gc
import weakref

from robustrag_integrations import CallableModel, KeywordAggregation
from robustrag_integrations.models.event_loops import PerLoop
from tests.helpers.scripted import BARE, split


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
