"""Any function as a model: concurrency, retries, time-outs, cancellation, and failures that cost one group only."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
import time

import pytest

from robustrag_integrations import CallableModel, KeywordAggregation, ModelError, QuorumError
from robustrag_integrations.prompts import Prompt
from tests.helpers.leaks import nothing_left
from tests.helpers.scripted import BARE, split


def defense(model: CallableModel, **settings) -> KeywordAggregation:
    return KeywordAggregation(model, extractor=split, prompts=BARE, final="always", **settings)


class Gauge:
    """Counts how many calls are under way at once."""

    def __init__(self) -> None:
        self.now = 0
        self.most = 0
        self._lock = threading.Lock()

    def __enter__(self) -> None:
        with self._lock:
            self.now += 1
            self.most = max(self.most, self.now)

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self.now -= 1


async def test_a_synchronous_function_does_not_block_the_event_loop() -> None:
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            await asyncio.sleep(0.005)
            ticks += 1

    def llm(prompt: str) -> str:
        time.sleep(0.1)
        return "a"

    ticking = asyncio.create_task(tick())
    await defense(CallableModel(llm)).aanswer("q", ["x"] * 3)
    ticking.cancel()
    assert ticks >= 3


async def test_synchronous_answers_work_inside_a_running_loop_with_an_asynchronous_function() -> None:
    async def llm(prompt: str) -> str:
        await asyncio.sleep(0)
        return "a"

    assert defense(CallableModel(async_fn=llm)).answer("q", ["x"] * 3).evidence["counts"] == {"a": 3}


def test_a_transient_failure_is_tried_again_and_another_is_not() -> None:
    tries: dict[str, int] = {}

    def llm(prompt: str) -> str:
        tries[prompt] = tries.get(prompt, 0) + 1
        if prompt.startswith("flaky") and tries[prompt] < 3:
            raise ConnectionError("reset by peer")
        if prompt.startswith("refused"):
            raise RuntimeError("content filter")
        return "a"

    answer = defense(CallableModel(llm, retry_wait=0.001)).answer("q", ["flaky", "refused", "fine", "good"])
    assert tries["flaky|q"] == 3
    assert tries["refused|q"] == 1
    assert [g.status for g in answer.groups] == ["supports", "failed", "supports", "supports"]
    assert answer.groups[1].error == "RuntimeError: content filter"


async def test_an_asynchronous_call_that_hangs_is_cancelled() -> None:
    cancelled = asyncio.Event()

    async def llm(prompt: str) -> str:
        if prompt.startswith("hang"):
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                cancelled.set()
                raise
        return "a"

    answer = await defense(CallableModel(async_fn=llm, timeout=0.1, attempts=1)).aanswer("q", ["hang", "x", "x"])
    assert cancelled.is_set()
    assert answer.groups[0].status == "failed"


async def test_cancelling_an_answer_cancels_its_calls_and_leaves_no_task() -> None:
    started, cancelled = 0, 0

    async def llm(prompt: str) -> str:
        nonlocal started, cancelled
        started += 1
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            cancelled += 1
            raise
        return "a"

    before = asyncio.all_tasks()
    asking = asyncio.create_task(defense(CallableModel(async_fn=llm)).aanswer("q", ["x"] * 5))
    while started < 5:
        await asyncio.sleep(0.001)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    assert cancelled == 5
    assert asyncio.all_tasks() == before


def test_no_thread_is_left_behind() -> None:
    with nothing_left():
        defense(CallableModel(lambda p: "a", timeout=5)).answer("q", ["x"] * 6)


def test_below_the_quorum_the_whole_call_raises_with_the_causes() -> None:
    def llm(prompt: str) -> str:
        if prompt.startswith("bad"):
            raise RuntimeError("status 500")
        return "a"

    with pytest.raises(QuorumError, match=r"1 of 4 groups.*status 500.*quorum") as caught:
        defense(CallableModel(llm)).answer("q", ["bad", "bad", "bad", "x"])
    assert sorted(caught.value.causes) == [0, 1, 2]
    assert defense(CallableModel(llm), quorum=0.25).answer("q", ["bad", "bad", "bad", "x"]).text == "a"


def test_a_failure_of_the_final_call_is_raised() -> None:
    def llm(prompt: str) -> str:
        if prompt.startswith("kept"):
            raise RuntimeError("gone")
        return "a"

    with pytest.raises(ModelError, match="final call failed: RuntimeError: gone"):
        defense(CallableModel(llm)).answer("q", ["x"] * 3)


def test_something_that_is_not_text_fails_its_group() -> None:
    answer = defense(CallableModel(lambda p: 3 if p.startswith("odd") else "a")).answer("q", ["odd", "x", "x"])
    assert "must return a str or a Response, got int" in (answer.groups[0].error or "")


def test_streaming_functions_stream_the_final_answer_only() -> None:
    streamed: list[str] = []

    def pieces(prompt: str):
        streamed.append(prompt)
        yield from ["  The ", "answer", " ", ""]

    stream = defense(CallableModel(lambda p: "a", stream_fn=pieces)).stream("q", ["x"] * 3)
    with pytest.raises(RuntimeError, match="to its end"):
        _ = stream.answer
    assert list(stream) == ["The", " answer"]
    assert stream.answer.text == "The answer"
    assert streamed == ["kept[a] q"]


async def test_asynchronous_streaming_functions_stream_the_final_answer_only() -> None:
    async def pieces(prompt: str):
        for piece in ("one ", "two"):
            yield piece

    model = CallableModel(lambda p: "a", async_stream_fn=pieces)
    stream = defense(model).astream("q", ["x"] * 3)
    assert [p async for p in stream] == ["one", " two"]
    assert stream.answer.text == "one two"


def test_a_stream_that_breaks_raises_a_model_error_where_a_call_fails_too() -> None:
    def pieces(prompt: str):
        yield "one"
        raise ConnectionError("reset")

    isolated = iter("aaa")
    model = CallableModel(lambda p: next(isolated, None), stream_fn=pieces, attempts=1)  # type: ignore[arg-type]
    stream = defense(model).stream("q", ["x"] * 3)
    with pytest.raises(ModelError, match="ConnectionError: reset"):
        list(stream)


def test_a_model_that_samples_is_warned_of() -> None:
    answer = defense(CallableModel(lambda p: "a", samples=True)).answer("q", ["x"] * 5)
    assert any("samples" in w for w in answer.warnings)
    assert not any("samples" in w for w in defense(CallableModel(lambda p: "a")).answer("q", ["x"] * 5).warnings)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "needs fn"),
        ({"fn": "gpt"}, "must be a function"),
        ({"fn": len, "max_concurrency": 0}, "max_concurrency=0"),
        ({"fn": len, "attempts": 0}, "attempts=0"),
        ({"fn": len, "timeout": 0}, "timeout=0"),
        ({"fn": len, "timeout": -1.0}, "timeout=-1.0"),
        ({"fn": len, "timeout": "x"}, "timeout='x' must be above 0 seconds"),
        ({"fn": asyncio.sleep}, "async_fn="),
        *[
            ({"fn": len, "retry_on": given}, r"retry_on=.* must hold classes of exceptions")
            for given in (5, "ConnectionError", [ConnectionError("x")], [str], None)
        ],
        *[
            ({"fn": len, "samples": given}, r"samples=.* must be True, False, or None")
            for given in ("", [], "False", 0, 1)
        ],
    ],
)
def test_bad_settings_are_named(arguments: dict, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        CallableModel(**arguments)


@pytest.mark.parametrize("given", [ConnectionError, [ConnectionError, KeyError], (ConnectionError,)])
def test_exceptions_to_retry_come_alone_or_in_any_list(given) -> None:
    tries = []

    def failing(prompt: str) -> str:
        tries.append(prompt)
        raise ConnectionError("down")

    with pytest.raises(QuorumError, match="gave up after 2 tries: ConnectionError: down"):
        defense(CallableModel(failing, retry_on=given, attempts=2, retry_wait=0.001)).answer("q", ["a"])
    assert len(tries) == 2


def test_a_stream_that_nobody_reads_holds_no_slot() -> None:
    def pieces(prompt: str):
        yield "par"
        yield "is"

    model = CallableModel(lambda prompt: "paris", stream_fn=pieces, max_concurrency=1, timeout=5)
    unread = [defense(model).stream("q", ["a", "b", "c"]) for _ in range(3)]
    assert [next(stream) for stream in unread] == ["par"] * 3
    assert defense(model).answer("q", ["a", "b", "c"]).text == "paris"
    assert ["".join(stream) for stream in unread] == ["is"] * 3


async def test_an_async_stream_that_nobody_reads_holds_no_slot() -> None:
    async def say(prompt: str) -> str:
        return "paris"

    async def pieces(prompt: str):
        yield "par"
        yield "is"

    model = CallableModel(async_fn=say, async_stream_fn=pieces, max_concurrency=1)
    unread = [defense(model).astream("q", ["a", "b", "c"]) for _ in range(3)]
    assert [await anext(stream) for stream in unread] == ["par"] * 3
    answer = await asyncio.wait_for(defense(model).aanswer("q", ["a", "b", "c"]), 10)
    assert answer.text == "paris"
    for stream in unread:
        await stream.aclose()


async def test_closing_a_stream_closes_the_models_own() -> None:
    closed: list[str] = []

    async def say(prompt: str) -> str:
        return "paris"

    async def pieces(prompt: str):
        try:
            yield "par"
            yield "is"
        finally:
            await asyncio.sleep(0.01)
            closed.append("closed")

    stream = defense(CallableModel(async_fn=say, async_stream_fn=pieces)).astream("q", ["a", "b", "c"])
    assert await anext(stream) == "par"
    await stream.aclose()
    assert closed == ["closed"]


def test_synchronous_calls_of_a_coroutine_function_share_one_loop_and_one_cap() -> None:
    gauge, loops = Gauge(), set()

    async def say(prompt: str) -> str:
        loops.add(id(asyncio.get_running_loop()))
        with gauge:
            await asyncio.sleep(0.02)
        return "paris"

    model = CallableModel(async_fn=say, max_concurrency=2)
    asking = [threading.Thread(target=defense(model).answer, args=("q", ["a", "b", "c"])) for _ in range(4)]
    for thread in asking:
        thread.start()
    for thread in asking:
        thread.join()
    assert (gauge.most, len(loops)) == (2, 1)


def test_a_coroutine_function_may_ask_its_own_model_without_awaiting() -> None:
    async def say(prompt: str) -> str:
        return "inner" if prompt == "again" else model.generate([Prompt("again")], "isolated")[0].text or ""

    model = CallableModel(async_fn=say, max_concurrency=1)
    replies: list[str | None] = []
    thread = threading.Thread(
        target=lambda: replies.extend(r.text for r in model.generate([Prompt("x")], "isolated")), daemon=True
    )
    thread.start()
    thread.join(20)
    assert replies == ["inner"]


INTERRUPTED = """
import asyncio, os, signal, threading, time
from robustrag_integrations import CallableModel, KeywordAggregation

begun, cancelled = threading.Event(), threading.Event()

async def slow(prompt):
    begun.set()
    try:
        await asyncio.sleep(60)
    except asyncio.CancelledError:
        cancelled.set()
        raise

def interrupt():
    begun.wait()
    time.sleep(0.2)
    os.kill(os.getpid(), signal.SIGINT)

threading.Thread(target=interrupt).start()
try:
    KeywordAggregation(CallableModel(async_fn=slow)).answer("q", ["a", "b", "c"])
except KeyboardInterrupt:
    assert cancelled.wait(10)
    print("interrupted")
"""


def test_an_interrupt_cancels_the_calls_of_a_coroutine_function() -> None:
    done = subprocess.run([sys.executable, "-c", INTERRUPTED], capture_output=True, text=True, timeout=40)
    assert done.stdout.strip() == "interrupted", done.stderr
