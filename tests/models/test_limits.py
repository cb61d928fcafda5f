"""Limits of calls: so many at a time, each within its time; a call that was given up is never waited for."""

from __future__ import annotations

import asyncio
import copy
import itertools
import re
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from robustrag_integrations import CallableModel, ModelError
from robustrag_integrations.models.limits import MOST_LEFT, CallLimits, await_within
from robustrag_integrations.prompts import Prompt


def eventually(holds: Callable[[], bool], patience: float = 20.0) -> bool:
    deadline = time.monotonic() + patience
    while not holds() and time.monotonic() < deadline:
        time.sleep(0.01)
    return holds()


# --- places


@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("asynchronous", [False, True])
def test_no_more_calls_are_under_way_than_allowed_over_all_threads_or_in_a_loop(count: int, asynchronous: bool) -> None:
    lock, full = threading.Lock(), threading.Barrier(count)
    here, most = 0, 0

    def call(prompt: str) -> str:
        nonlocal here, most
        with lock:
            here, most = here + 1, max(most, here + 1)
        full.wait(timeout=60)  # as many as are allowed come together, four times
        with lock:
            here -= 1
        return "a"

    async def ask() -> None:
        await asyncio.gather(*(model.agenerate([Prompt("x")], "isolated") for _ in range(4 * count)))

    model = CallableModel(call, max_concurrency=count)
    if asynchronous:
        asyncio.run(ask())
    else:
        with ThreadPoolExecutor(4 * count) as pool:
            list(pool.map(lambda _: model.generate([Prompt("x")], "isolated"), range(4 * count)))
    assert (here, most) == (0, count)


async def test_a_lower_cap_is_shared_by_all_who_have_it_and_counts_in_the_whole() -> None:
    limits = CallLimits(3)
    under_way = {1: 0, None: 0}
    most = {1: 0, None: 0, "all": 0}

    async def call(cap: Any) -> None:
        async with limits.slot(cap):
            under_way[cap] += 1
            most[cap] = max(most[cap], under_way[cap])
            most["all"] = max(most["all"], sum(under_way.values()))
            await asyncio.sleep(0.02)
            under_way[cap] -= 1

    await asyncio.gather(*(call(cap) for cap in [1, None] * 6))
    assert most[1] == 1
    assert most["all"] == 3


async def test_a_place_is_given_back_by_a_call_that_fails_and_a_copy_has_its_own() -> None:
    limits = CallLimits(1, 7.0)
    for _ in range(3):
        with pytest.raises(ZeroDivisionError):
            async with limits.slot(), copy.copy(limits).slot():
                1 / 0  # noqa: B018
    assert copy.deepcopy(limits).timeout == 7.0


# --- time


def test_calls_that_compute_for_ever_are_bounded_in_number_and_the_rest_fail_at_once() -> None:
    release = threading.Event()
    model = CallableModel(lambda prompt: "a" if "fine" in prompt else str(release.wait(60)), timeout=0.1, attempts=1)
    before = threading.active_count()
    try:
        for _ in range(8):
            model.generate([Prompt("x")] * 7, "isolated")
        assert threading.active_count() - before <= MOST_LEFT + 2 * 10  # those under way have two each
        began = time.monotonic()
        [response] = model.generate([Prompt("fine")], "isolated")
        said = re.search(
            r"(\d+) calls that ran out of time are still running; from 32 on, further", response.error or ""
        )
        assert said
        assert MOST_LEFT <= int(said[1]) < MOST_LEFT + 10
        assert time.monotonic() - began < 5
    finally:
        release.set()
    assert eventually(lambda: model.generate([Prompt("fine")], "isolated")[0].text == "a")


HANGING = """
import asyncio, threading, time
from robustrag_integrations import CallableModel, KeywordAggregation

def model(prompt):
    if "hang" in prompt:
        threading.Event().wait()  # for ever
    return "a"

defense = KeywordAggregation(CallableModel(model, timeout=0.3, attempts=1), extractor=lambda text: {text})
for answer in (
    defense.answer("q", ["hang", "x", "x"]),
    asyncio.run(defense.aanswer("q", ["hang", "x", "x"])),
):
    assert [g.status for g in answer.groups] == ["failed", "supports", "supports"], answer
    assert "no answer within 0.3 s" in answer.groups[0].error
"""


def test_neither_an_event_loop_nor_the_interpreter_waits_for_a_function_that_was_given_up() -> None:
    subprocess.run([sys.executable, "-c", HANGING], check=True, timeout=120)


async def test_cancelling_gives_up_a_synchronous_call() -> None:
    limits, begun, release = CallLimits(), threading.Event(), threading.Event()

    def slow() -> None:
        begun.set()
        release.wait(60)

    task = asyncio.create_task(limits.in_thread(slow))
    await asyncio.to_thread(begun.wait, 20)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert limits.left == 1
    release.set()
    assert await asyncio.to_thread(eventually, lambda: not limits.left)


@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_stream_is_given_up_and_closed_by_its_thread(asynchronous: bool) -> None:
    release, closed = threading.Event(), threading.Event()

    def pieces(prompt: str) -> Iterator[str]:
        try:
            yield "one"
            release.wait(60)
            yield "two"
        finally:
            closed.set()

    async def read() -> list[str]:
        return [piece async for piece in model.astream(Prompt("x"))]

    model = CallableModel(len, stream_fn=pieces, timeout=0.3)
    with pytest.raises(ModelError, match=r"no complete answer within 0\.3 s"):
        asyncio.run(read()) if asynchronous else list(model.stream(Prompt("x")))
    assert not closed.is_set()
    release.set()
    assert closed.wait(20)


def test_pieces_do_not_pile_up_for_a_reader_who_takes_his_time() -> None:
    made, closed = itertools.count(), threading.Event()

    def pieces(prompt: str) -> Iterator[str]:
        try:
            while True:
                yield str(next(made))
        finally:
            closed.set()

    begun = CallableModel(len, stream_fn=pieces, timeout=60).stream(Prompt("x"))
    assert [next(begun) for _ in range(3)] == ["0", "1", "2"]
    assert next(made) == 3
    begun.close()  # type: ignore[attr-defined]
    assert closed.wait(20)


async def test_asynchronous_streams_give_all_pieces_and_the_iterators_own_error() -> None:
    def pieces(end: Exception | None) -> Iterator[str]:
        for number in range(100):
            yield str(number)
        if end is not None:
            raise end

    limits = CallLimits(1, 60)
    assert [p async for p in limits.iterate(limits.iterate_in_thread(pieces, None))] == [str(n) for n in range(100)]
    broken = CallLimits().iterate_in_thread(pieces, ConnectionError("reset"))
    assert [await anext(broken) for _ in range(100)] == [str(n) for n in range(100)]
    with pytest.raises(ConnectionError, match="reset"):
        await anext(broken)
    assert not limits.left


@pytest.mark.parametrize("timeout", [None, 60])
async def test_a_function_that_raises_stop_iteration_fails_as_any_other(timeout: float | None) -> None:
    def ended(prompt: str) -> str:
        return next(iter(()))

    model = CallableModel(ended, timeout=timeout, attempts=1)
    [response] = await asyncio.wait_for(model.agenerate([Prompt("x")], "isolated"), 20)
    assert "StopIteration" in (response.error or "")
    assert "StopIteration" in (model.generate([Prompt("x")], "isolated")[0].error or "")


async def test_an_asynchronous_stream_runs_a_synchronous_function_in_threads() -> None:
    def pieces(prompt: str) -> Iterator[str]:
        yield "one "
        time.sleep(0.05)
        yield threading.current_thread().name

    model = CallableModel(lambda prompt: "a", stream_fn=pieces)
    assert [piece async for piece in model.astream(Prompt("x"))] == ["one ", "robustrag"]


# --- time limits around asynchronous calls: no cancellation, no result and no error of the callee is lost


async def test_a_cancellation_that_comes_just_when_the_result_does_is_not_lost() -> None:
    """`asyncio.wait_for` returned the result in its place before Python 3.12."""
    result = asyncio.get_running_loop().create_future()
    task = asyncio.create_task(await_within(60, result))
    await asyncio.sleep(0)
    result.set_result("late")
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_cancelled_stream_ends_though_a_piece_is_always_there() -> None:
    async def endless() -> AsyncIterator[str]:
        while True:
            await asyncio.sleep(0)
            yield "a"

    async def read() -> None:
        async for _ in CallLimits(1, 60).iterate(endless()):
            pass

    for pause in range(50):  # whatever the moment
        task = asyncio.create_task(read())
        for _ in range(20 + pause):
            await asyncio.sleep(0)
        task.cancel()
        done, _ = await asyncio.wait([task], timeout=20)
        assert done
        assert task.cancelled()


async def test_what_takes_too_long_is_cancelled_and_named() -> None:
    stopped = asyncio.Event()

    async def hang() -> None:
        try:
            await asyncio.sleep(600)
        finally:
            stopped.set()

    with pytest.raises(TimeoutError, match=r"no answer within 0\.05 s"):
        await await_within(0.05, hang())
    assert stopped.is_set()


async def test_a_result_and_the_callees_own_errors_come_through() -> None:
    async def fails(error: Exception) -> None:
        raise error

    async def gives() -> str:
        return "a"

    for timeout in (None, 60):
        assert await await_within(timeout, gives()) == "a"
        with pytest.raises(TimeoutError, match="my own"):
            await await_within(timeout, fails(TimeoutError("my own")))


async def test_a_result_that_comes_in_spite_of_being_cancelled_is_given() -> None:
    async def stubborn() -> str:
        try:
            await asyncio.sleep(600)
        except asyncio.CancelledError:
            return "done"
        return ""

    assert await await_within(0.01, stubborn()) == "done"
