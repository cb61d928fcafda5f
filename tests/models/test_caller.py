"""Making calls: so many at a time, each within its time, again where that may help, and no longer than needed."""

from __future__ import annotations

import asyncio
import copy
import re
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import pytest

from robustrag_integrations import CallableModel, ModelError
from robustrag_integrations.models import caller
from robustrag_integrations.models.base import Response, Until
from robustrag_integrations.models.caller import MOST_LEFT, CallLimits, await_within, is_busy, retry_after
from robustrag_integrations.text.prompts import Prompt
from tests.helpers.leaks import eventually, nothing_left

PROMPTS = [Prompt(f"prompt {i}", (0, 8)) for i in range(6)]
STYLES = ("synchronous", "asynchronous")


def heard(replies: Sequence[Response]) -> int:
    return sum(reply.text is not None for reply in replies)


def until(number: int) -> Until:
    return lambda replies: heard(replies) >= number


def asked(model: CallableModel, style: str, rule: Until) -> list[Response]:
    if style == "synchronous":
        return model.generate(PROMPTS, "isolated", rule)
    return asyncio.run(model.agenerate(PROMPTS, "isolated", rule))


# --- as soon as the replies are enough


@pytest.mark.parametrize("style", STYLES)
def test_a_slow_function_is_given_up_and_holds_no_place(style: str) -> None:
    go_on = threading.Event()

    def slow(prompt: str) -> str:
        if prompt == "prompt 0":
            go_on.wait(20)
        return "said"

    model = CallableModel(slow, max_concurrency=2)
    with nothing_left():
        for _ in range(3):  # two calls that were given up would fill both places
            began = time.monotonic()
            replies = asked(model, style, until(5))
            assert time.monotonic() - began < 5
            assert [r.skipped_reason for r in replies] == ["cancelled"] + [None] * 5
        go_on.set()


@pytest.mark.parametrize("style", STYLES)
def test_further_calls_go_out_only_while_the_replies_are_not_enough(style: str) -> None:
    sent: list[str] = []

    def model(prompt: str) -> str:
        sent.append(prompt)
        return "said"

    replies = asked(CallableModel(model, max_concurrency=1), style, until(4))
    assert sorted(sent) == [p.text for p in PROMPTS[:4]]
    assert [r.skipped_reason for r in replies] == [None] * 4 + ["not_asked"] * 2
    sent.clear()
    assert heard(asked(CallableModel(model), style, until(7))) == len(sent) == 6


async def test_a_call_that_somebody_else_cancelled_costs_its_source_alone() -> None:
    async def say(prompt: str) -> str:
        if prompt == "prompt 3":
            shared = asyncio.ensure_future(asyncio.sleep(20, "said"))  # as in a cache of requests
            asyncio.get_running_loop().call_later(0.05, shared.cancel)
            return await shared
        return "said"

    replies = await CallableModel(async_fn=say).agenerate(PROMPTS, "isolated")
    assert [reply.text for reply in replies] == ["said"] * 3 + [None] + ["said"] * 2
    assert "cancelled, though its reply was waited for" in (replies[3].error or "")


# --- places


@pytest.mark.parametrize("asynchronous", [False, True])
def test_no_more_calls_are_under_way_than_allowed_over_all_threads_or_in_a_loop(asynchronous: bool) -> None:
    count, lock, full = 3, threading.Lock(), threading.Barrier(3)
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


async def test_a_lower_cap_is_shared_by_all_who_have_it_and_a_copy_counts_for_itself() -> None:
    limits, under_way, most = CallLimits(3, 7.0), {1: 0, None: 0}, {1: 0, None: 0, "all": 0}

    async def call(cap: Any) -> None:
        async with limits.slot(cap):
            under_way[cap] += 1
            most[cap] = max(most[cap], under_way[cap])
            most["all"] = max(most["all"], sum(under_way.values()))
            await asyncio.sleep(0.02)
            under_way[cap] -= 1

    await asyncio.gather(*(call(cap) for cap in [1, None] * 6))
    assert (most[1], most["all"]) == (1, 3)
    async with limits.slot(1), copy.deepcopy(limits).slot(1):
        assert copy.copy(limits).timeout == 7.0


# --- time


def test_calls_that_compute_for_ever_are_bounded_in_number_and_the_rest_fail_at_once() -> None:
    release = threading.Event()
    model = CallableModel(lambda prompt: "a" if "fine" in prompt else str(release.wait(60)), timeout=0.1, attempts=1)
    before = threading.active_count()
    try:
        for _ in range(8):
            model.generate([Prompt("x")] * 7, "isolated")
        assert threading.active_count() - before <= MOST_LEFT + 2 * 10
        began = time.monotonic()
        [response] = model.generate([Prompt("fine")], "isolated")
        said = re.search(r"(\d+) calls that ran out of time are still running; from 32 on", response.error or "")
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
    assert [g.status for g in answer.sources] == ["failed", "supports", "supports"], answer
    assert "no answer within 0.3 s" in answer.sources[0].error
"""


def test_neither_an_event_loop_nor_the_interpreter_waits_for_a_function_that_was_given_up() -> None:
    subprocess.run([sys.executable, "-c", HANGING], check=True, timeout=120)


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


async def test_a_cancellation_that_comes_just_when_the_result_does_is_not_lost() -> None:
    """`asyncio.wait_for` returned the result in its place before Python 3.12."""
    result = asyncio.get_running_loop().create_future()
    task = asyncio.create_task(await_within(60, result))
    await asyncio.sleep(0)
    result.set_result("late")
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_what_takes_too_long_is_cancelled_and_named_and_the_callees_own_errors_come_through() -> None:
    stopped = asyncio.Event()

    async def hang() -> None:
        try:
            await asyncio.sleep(600)
        finally:
            stopped.set()

    async def fails() -> None:
        raise TimeoutError("my own")

    with pytest.raises(TimeoutError, match=r"no answer within 0\.05 s"):
        await await_within(0.05, hang())
    assert stopped.is_set()
    for timeout in (None, 60):
        assert await await_within(timeout, asyncio.sleep(0, "a")) == "a"
        with pytest.raises(TimeoutError, match="my own"):
            await await_within(timeout, fails())


# --- another try


class Refused(Exception):
    """A client's error with a status."""

    def __init__(self, status: int, **headers: str) -> None:
        super().__init__(f"Error code: {status}")
        self.status_code = status
        self.response = SimpleNamespace(headers={k.replace("_", "-"): v for k, v in headers.items()})


class Busy:
    """Busy for the first calls."""

    def __init__(self, times: int, **headers: str) -> None:
        self.times, self.headers, self.calls = times, headers, 0

    def ask(self, prompt: object) -> str:
        self.calls += 1
        if self.calls <= self.times:
            raise Refused(429, **self.headers)
        return "yes"

    async def aask(self, prompt: object) -> str:
        return self.ask(prompt)

    def pieces(self, prompt: str) -> Iterator[str]:
        yield self.ask(prompt)

    async def apieces(self, prompt: str) -> AsyncIterator[str]:
        yield self.ask(prompt)

    def model(self, attempts: int = 3) -> CallableModel:
        functions: Any = {"stream_fn": self.pieces, "async_stream_fn": self.apieces}
        return CallableModel(self.ask, self.aask, attempts=attempts, **functions)


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(caller, "_FIRST_WAIT", 0.001)


def test_what_says_that_the_server_is_busy_and_for_how_long() -> None:
    assert [s for s in (200, 400, 401, 403, 404, 408, 409, 422, 429, 500, 503, 529) if is_busy(Refused(s))] == [
        408, 409, 429, 500, 503, 529,
    ]  # fmt: skip
    boto = ValueError("slow down")
    boto.response = {"ResponseMetadata": {"HTTPStatusCode": 429}}  # type: ignore[attr-defined]
    assert is_busy(boto)
    assert not is_busy(ValueError("429"))
    assert [retry_after(Refused(429, retry_after=said)) for said in ("1.5", "soon", "-3")] == [1.5, None, 0.0]
    assert retry_after(Refused(429)) is None


async def test_a_busy_server_is_asked_again_in_every_style(quick: None) -> None:
    assert [r.text for r in Busy(2).model().generate([Prompt("a")], "final")] == ["yes"]
    assert [r.text for r in await Busy(2).model().agenerate([Prompt("a")], "final")] == ["yes"]
    assert list(Busy(2).model().stream(Prompt("a"))) == ["yes"]
    assert [piece async for piece in Busy(2).model().astream(Prompt("a"))] == ["yes"]


def test_the_wait_is_as_long_as_the_server_says_and_an_hour_is_not_waited_for() -> None:
    started = time.monotonic()
    assert Busy(1, retry_after="0.8").model().generate([Prompt("a")], "final")[0].text == "yes"
    assert time.monotonic() - started >= 0.8
    busy = Busy(1, retry_after="3600")
    assert busy.model().generate([Prompt("a")], "final")[0].text is None
    assert busy.calls == 1


async def test_the_wait_is_doubled_up_to_the_longest_and_has_jitter(monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    monkeypatch.setattr(caller, "asyncio", SimpleNamespace(**{**vars(asyncio), "sleep": sleep}))
    for _ in range(50):
        await Busy(9).model(attempts=10).agenerate([Prompt("a")], "final")
    for tries, longest in ((1, 0.5), (2, 1.0), (3, 2.0), (9, 20.0)):
        waits = slept[tries - 1 :: 9]
        assert 0.7 * longest < max(waits) <= longest
        assert len(set(waits)) == 50
