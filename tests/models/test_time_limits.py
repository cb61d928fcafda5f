"""Time limits around asynchronous calls: no cancellation, no result and no error of the callee is lost."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from robustrag_integrations.models.time_limits import astream_within, await_within


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
        async for _ in astream_within(60, endless()):
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
