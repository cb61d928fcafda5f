"""Servers that are busy: which errors say so, how long to wait, and what a group that gave up says."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Iterator
from email.utils import formatdate
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

from robustrag_integrations import CallableModel, ModelError
from robustrag_integrations.models.caller import ModelCaller, RetriedCall
from robustrag_integrations.models.client_errors import is_busy, pause_before_retry, retry_after
from robustrag_integrations.models.limits import CallLimits
from robustrag_integrations.prompts import Prompt

FAST: Any = {"retry_wait": 0.001, "retry_max_wait": 0.002, "retry_busy": True}


class Refused(Exception):
    """A client's error with a status."""

    def __init__(self, status: int, **headers: str) -> None:
        super().__init__(f"Error code: {status}")
        self.status_code = status
        self.response = SimpleNamespace(
            headers={k.replace("_", "-"): v for k, v in headers.items()}, status_code=status
        )


def test_what_says_that_the_server_is_busy() -> None:
    assert [s for s in (200, 400, 401, 403, 404, 408, 409, 422, 429, 500, 503, 529) if is_busy(Refused(s))] == [
        408, 409, 429, 500, 503, 529,
    ]  # fmt: skip
    assert is_busy(type("RateLimitError", (Exception,), {})())
    assert not is_busy(ValueError("429"))


def test_how_long_a_server_wants_to_be_left_alone() -> None:
    assert retry_after(Refused(429)) is None
    assert retry_after(Refused(429, Retry_After="1.5")) == 1.5
    assert retry_after(Refused(429, retry_after_ms="250", retry_after="9")) == 0.25
    assert 50 < (retry_after(Refused(429, retry_after=formatdate(time.time() + 60))) or 0) <= 60
    assert retry_after(Refused(429, retry_after="soon")) is None


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


def made(busy: Busy, **settings: Any) -> CallableModel:
    functions: Any = {"stream_fn": busy.pieces, "async_stream_fn": busy.apieces}
    return CallableModel(busy.ask, busy.aask, **functions, **{**FAST, **settings})


async def test_a_busy_server_is_asked_again_in_every_style() -> None:
    assert [r.text for r in made(Busy(2)).generate([Prompt("a")], "final")] == ["yes"]
    assert [r.text for r in await made(Busy(2)).agenerate([Prompt("a")], "final")] == ["yes"]
    assert list(made(Busy(2)).stream(Prompt("a"))) == ["yes"]
    assert [piece async for piece in made(Busy(2)).astream(Prompt("a"))] == ["yes"]


async def test_who_gives_up_says_after_how_many_tries() -> None:
    for responses in (
        made(Busy(9)).generate([Prompt("a")], "final"),
        await made(Busy(9)).agenerate([Prompt("a")], "final"),
    ):
        assert responses[0].error == "gave up after 3 tries: Refused: Error code: 429"
    [once] = made(Busy(9), attempts=1).generate([Prompt("a")], "final")
    assert once.error == "Refused: Error code: 429"
    busy = Busy(9)
    with pytest.raises(ModelError, match="429"):
        list(made(busy).stream(Prompt("a")))
    assert busy.calls == 3


def test_a_client_that_tries_again_by_itself_is_left_to_it() -> None:
    busy = Busy(1)
    [response] = made(busy, retry_busy=False).generate([Prompt("a")], "final")
    assert (response.text, busy.calls) == (None, 1)


def test_the_wait_is_as_long_as_the_server_says_and_an_hour_is_not_waited_for() -> None:
    started = time.monotonic()
    assert made(Busy(1, retry_after="0.2")).generate([Prompt("a")], "final")[0].text == "yes"
    assert time.monotonic() - started >= 0.2
    busy = Busy(1, retry_after="3600")
    assert made(busy).generate([Prompt("a")], "final")[0].text is None
    assert busy.calls == 1


def test_a_stream_that_has_begun_is_not_asked_for_again() -> None:
    calls = []

    def pieces(prompt: str) -> Iterator[str]:
        calls.append(prompt)
        yield "half"
        raise Refused(503)

    with pytest.raises(ModelError):
        list(CallableModel(lambda prompt: "", stream_fn=pieces, **FAST).stream(Prompt("a")))
    assert len(calls) == 1


def test_the_wait_is_doubled_up_to_the_longest_and_has_jitter() -> None:
    for tries, longest in ((1, 0.5), (2, 1.0), (3, 2.0), (10, 20.0), (10_000, 20.0)):
        waits = [pause_before_retry(ConnectionError(), tries, 0.5, 20.0) for _ in range(200)]
        assert all(0 <= (wait or 0.0) <= longest for wait in waits)
        assert max(wait or 0.0 for wait in waits) > 0.8 * longest
        assert len(set(waits)) > 100
    assert pause_before_retry(Refused(429, retry_after="7"), 1, 0.5, 20.0) == 7
    assert pause_before_retry(Refused(429, retry_after="61"), 1, 0.5, 20.0) is None


async def test_the_tries_of_a_call_are_counted() -> None:
    caller = ModelCaller(CallLimits(), 3, is_busy, 0.0)
    for busy, made in ((0, 1), (1, 2), (2, 3), (9, 3)):
        client, call = Busy(busy), RetriedCall()
        try:
            assert await caller.call(partial(client.aask, ""), call) == "yes"
        except Refused:
            assert busy == 9
        assert call.tries == client.calls == made
