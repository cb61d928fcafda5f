"""Any function as a model: failures and exits that cost one source only, streams, cancellation, and event loops."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextvars import ContextVar

import pytest

from robustrag_integrations import CallableModel, ConsensusAggregation, KeywordAggregation, ModelError, RobustAnswer
from robustrag_integrations.text.prompts import Prompt
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


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "needs fn"),
        ({"fn": "gpt"}, "functions from prompt to text, got str"),
        ({"fn": len, "max_concurrency": 0}, "max_concurrency=0"),
        ({"fn": len, "timeout": -1.0}, "timeout=-1.0"),
        ({"fn": len, "timeout": "x"}, "timeout='x' must be above 0 seconds"),
        ({"fn": asyncio.sleep}, "async_fn="),
        ({"fn": len, "samples": "False"}, r"samples=.* must be True, False, or None"),
    ],
)
def test_bad_settings_are_named(arguments: dict, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        CallableModel(**arguments)


def test_a_call_has_a_context_of_its_own_and_may_run_a_loop_though_the_asking_thread_has_one() -> None:
    left = ContextVar("left", default="nothing")

    async def said(prompt: str) -> str:
        return prompt + left.get()

    def model(prompt: str) -> str:
        reply = asyncio.run(said(prompt))
        left.set(prompt)
        return reply

    async def ask() -> list[str | None]:
        return [reply.text for reply in CallableModel(model).generate([Prompt("a"), Prompt("b")], "isolated")]

    left.set("!")
    assert asyncio.run(ask()) == ["a!", "b!"]
    assert left.get() == "!"


# --- functions that exit


def evil(error: BaseException, on: str = "evil") -> Callable[[str], str]:
    def fn(prompt: str) -> str:
        if on in prompt:
            raise error
        return "Paris"

    return fn


async def asked(made: ConsensusAggregation | KeywordAggregation, style: str, passages: list[str]) -> RobustAnswer:
    if style == "answer":
        return made.answer("Where?", passages)
    if style == "aanswer":
        return await made.aanswer("Where?", passages)
    if style == "stream":
        begun = made.stream("Where?", passages)
        "".join(begun)
        return begun.answer
    streamed = made.astream("Where?", passages)
    "".join([piece async for piece in streamed])
    return streamed.answer


@pytest.mark.parametrize("style", ["stream", "astream"])
def test_an_exit_in_the_final_call_is_a_failed_call(style: str) -> None:
    def pieces(prompt: str) -> Iterator[str]:
        yield "Pa"
        raise SystemExit(3)

    async def later(prompt: str) -> AsyncIterator[str]:
        yield "Pa"
        raise SystemExit(3)

    fn = evil(SystemExit(3), "kept")  # the isolated calls succeed, and the last one, about what was kept, exits
    for streams in ({}, {"stream_fn": pieces}, {"async_stream_fn": later}):
        made = defense(CallableModel(fn, **streams))
        with pytest.raises(ModelError, match="the model's function raised SystemExit"):
            asyncio.run(asked(made, style, ["Paris"] * 5))
