"""Calls that are made together, and end as soon as the replies that are in are enough: waves, and slow calls."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Sequence
from contextvars import ContextVar

import pytest

from robustrag_integrations import CallableModel
from robustrag_integrations.models.base import Response, Until
from robustrag_integrations.models.wrappers import TwoModels
from robustrag_integrations.prompts import Prompt
from tests.helpers.leaks import nothing_left
from tests.helpers.scripted import ScriptedModel

PROMPTS = [Prompt(f"prompt {i}", (0, 8)) for i in range(6)]


def heard(replies: Sequence[Response]) -> int:
    return sum(reply.text is not None for reply in replies)


def until(number: int, wave_size: int | None = None) -> Until:
    return Until(lambda replies: heard(replies) >= number, wave_size)


def asked(model: CallableModel, style: str, rule: Until) -> list[Response]:
    if style == "synchronous":
        return model.generate_until(PROMPTS, "isolated", rule)
    return asyncio.run(model.agenerate_until(PROMPTS, "isolated", rule))


STYLES = ("synchronous", "asynchronous")


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


def test_a_slow_coroutine_is_cancelled() -> None:
    cancelled: list[str] = []

    async def slow(prompt: str) -> str:
        try:
            await asyncio.sleep(20 if prompt == "prompt 3" else 0)
        except asyncio.CancelledError:
            cancelled.append(prompt)
            raise
        return "said"

    for style in STYLES:
        replies = asked(CallableModel(async_fn=slow), style, until(5))
        assert [r.skipped_reason for r in replies] == [None] * 3 + ["cancelled"] + [None] * 2
    assert cancelled == ["prompt 3"] * 2


@pytest.mark.parametrize("style", STYLES)
def test_calls_that_never_went_out_are_told_from_cancelled_ones(style: str) -> None:
    sent: list[str] = []

    def one_by_one(prompt: str) -> str:
        sent.append(prompt)
        time.sleep(0.2)
        return "said"

    replies = asked(CallableModel(one_by_one, max_concurrency=1), style, until(2))
    went_out = [r for r in replies if r.skipped_reason != "not_asked"]
    assert 2 <= len(sent) <= len(went_out) < 6


@pytest.mark.parametrize("style", STYLES)
def test_the_next_wave_goes_out_only_if_the_last_was_not_enough(style: str) -> None:
    sent: list[str] = []

    def model(prompt: str) -> str:
        sent.append(prompt)
        return "said"

    replies = asked(CallableModel(model), style, until(4, wave_size=2))
    assert sorted(sent) == [p.text for p in PROMPTS[:4]]
    assert [r.skipped_reason for r in replies] == [None] * 4 + ["not_asked"] * 2
    sent.clear()
    assert heard(asked(CallableModel(model), style, until(7, wave_size=4))) == len(sent) == 6


@pytest.mark.parametrize("style", STYLES)
def test_a_wave_with_a_slow_call_does_not_hold_up_the_next(style: str) -> None:
    go_on = threading.Event()

    def slow(prompt: str) -> str:
        if prompt == "prompt 1":
            go_on.wait(20)
        return "said"

    began = time.monotonic()
    replies = asked(CallableModel(slow), style, until(5, wave_size=3))
    go_on.set()
    assert time.monotonic() - began < 5
    assert [r.skipped_reason for r in replies] == [None, "cancelled", *[None] * 4]


@pytest.mark.parametrize("style", STYLES)
def test_a_failed_call_is_in_and_what_enough_raises_comes_out(style: str) -> None:
    def fails(prompt: str) -> str:
        if prompt == "prompt 0":
            raise RuntimeError("no")
        return "said"

    replies = asked(CallableModel(fails), style, until(99))
    assert [r.error is None for r in replies] == [False] + [True] * 5
    assert not any(r.skipped_reason for r in replies)

    def broken(replies: Sequence[Response]) -> bool:
        raise ZeroDivisionError

    with nothing_left(), pytest.raises(ZeroDivisionError):
        asked(CallableModel(fails), style, Until(broken, wave_size=2))


def test_models_that_answer_together_are_asked_in_waves() -> None:
    model = ScriptedModel(lambda text: "said")
    replies = model.generate_until(PROMPTS, "isolated", until(4, wave_size=2))
    assert len(model.asked) == heard(replies) == 4
    again = asyncio.run(TwoModels(model, model).agenerate_until(PROMPTS, "isolated", until(1)))
    assert heard(again) == 6, "without waves, all are asked together"
    assert model.generate_until([], "isolated", until(1)) == []


def test_a_call_has_a_context_of_its_own() -> None:
    left = ContextVar("left", default="nothing")

    def model(prompt: str) -> str:
        before = left.get()
        left.set(prompt)
        return before

    left.set("the caller's")
    replies = CallableModel(model).generate(PROMPTS, "isolated")
    assert [reply.text for reply in replies] == ["the caller's"] * len(PROMPTS)
    assert left.get() == "the caller's"


def test_a_function_may_run_a_loop_of_its_own_though_the_asking_thread_has_one() -> None:
    async def said(prompt: str) -> str:
        return prompt

    def model(prompt: str) -> str:
        return asyncio.run(said(prompt))

    async def ask() -> list[Response]:
        return CallableModel(model).generate(PROMPTS, "isolated")

    assert [reply.text for reply in asyncio.run(ask())] == [prompt.text for prompt in PROMPTS]


def test_an_interrupt_in_a_call_comes_out_and_no_further_call_is_made() -> None:
    calls: list[str] = []

    def model(prompt: str) -> str:
        calls.append(prompt)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        CallableModel(model, max_concurrency=1).generate(PROMPTS, "isolated")
    assert calls == [PROMPTS[0].text]


async def test_a_call_that_somebody_else_cancelled_costs_its_group_alone() -> None:
    async def say(prompt: str) -> str:
        if prompt == "prompt 3":
            shared = asyncio.ensure_future(asyncio.sleep(20, "said"))  # as in a cache of requests
            asyncio.get_running_loop().call_later(0.05, shared.cancel)
            return await shared
        return "said"

    model = CallableModel(async_fn=say)
    for replies in (
        await model.agenerate(PROMPTS, "isolated"),
        await asyncio.to_thread(model.generate, PROMPTS, "final"),
    ):
        assert [reply.text for reply in replies] == ["said"] * 3 + [None] + ["said"] * 2
        assert "cancelled, though its reply was waited for" in (replies[3].error or "")
