"""One reply costs its own source at most: no time of the event loop, no memory, no other source."""

from __future__ import annotations

import asyncio
import gzip
import json
import resource
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("httpx", reason="needs the extra openai")

from robustrag_integrations import KeywordAggregation, ModelError, OpenAIModel
from robustrag_integrations.models.caller import await_within
from robustrag_integrations.models.server.connection import Connection, Events
from robustrag_integrations.text.prompts import Prompt
from tests.faults.matrix import in_the_end, on_sources
from tests.helpers.openai_server import LoopbackServer, Reply, served

pytestmark = pytest.mark.usefixtures("no_server_settings")

QUESTION = "Who runs the mill?"
PASSAGES = [f"The mill is run by Anna Lind. Note {n}." for n in range(5)]
MEGABYTE = 1 << 20


def phrase(response: str) -> set[str]:
    return {response.casefold()}


def defense(model: OpenAIModel) -> KeywordAggregation:
    return KeywordAggregation(model, extractor=phrase, final="always")


def on_one_source(fault: Reply) -> Callable[[str], str | Reply]:
    return on_sources(fault, range(1))


def completion(choices: Any, **more: Any) -> bytes:
    return json.dumps(
        {"id": "1", "object": "chat.completion", "created": 0, "model": "m", "choices": choices, **more}
    ).encode()


def choice(text: Any) -> dict[str, Any]:
    return {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}


def many_choices(size: int) -> bytes:
    return b'{"choices": [' + b"{}," * (size // 3) + b"{}]}"


def chunked(body: bytes) -> Reply:
    """A body that does not say how long it is."""

    def act(handler: Any) -> None:
        handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n")
        for at in range(0, len(body), 65536):
            part = body[at : at + 65536]
            handler.wfile.write(f"{len(part):x}\r\n".encode() + part + b"\r\n")
        handler.wfile.write(b"0\r\n\r\n")

    return Reply(act=act)


def endless(piece: bytes) -> Reply:
    """A body that goes on for as long as somebody reads it."""

    def act(handler: Any) -> None:
        handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n")
        while not handler.server.robustrag_closing.is_set():
            handler.wfile.write(piece)

    return Reply(act=act)


HOSTILE = {
    "600 kB of empty choices": Reply(body=many_choices(600_000)),
    "choices as an object": Reply(body=completion({str(n): choice("Eve") for n in range(500)})),
    "a choice that is a list": Reply(body=completion([[choice("Eve")]])),
    "one choice of 8 MiB": Reply(body=completion([choice("a" * 8 * MEGABYTE)])),
    "nested lists": Reply(body=completion([]).replace(b"[]", b"[" * 50_000 + b"]" * 50_000)),
    "a number of 60 kB": Reply(body=completion([]).replace(b"[]", b"9" * 60_000)),
    "chunks without a length": chunked(many_choices(2 * MEGABYTE)),
    "an endless body": endless(b" " * 65536),
    "gzip that nobody asked for": Reply(
        body=gzip.compress(b" " * 50 * MEGABYTE), headers={"Content-Encoding": "gzip"}
    ),
    "an error's page without end": Reply(body=b"<p>" * MEGABYTE, status=500),
    "a million log-probabilities": Reply(
        body=completion([{**choice("Eve"), "logprobs": {"content": [{"token": "a", "logprob": -1}] * 100_000}}])
    ),
}  # fmt: skip


async def longest_pause(asking: Any) -> tuple[Any, float]:
    """What comes of it, and the most computing of the loop's thread for which nothing else could run."""
    longest = 0.0

    async def tick() -> None:
        nonlocal longest
        last = time.thread_time()
        while True:
            await asyncio.sleep(0.005)
            now = time.thread_time()
            longest, last = max(longest, now - last), now

    ticking = asyncio.create_task(tick())
    await asyncio.sleep(0)
    try:
        return await asking, longest
    finally:
        ticking.cancel()


async def _ask(model: OpenAIModel) -> tuple[Any, float]:
    await model.agenerate([Prompt("warm")], "final")
    try:
        return await longest_pause(defense(model).aanswer(QUESTION, PASSAGES))
    finally:
        await model.aclose()


@pytest.mark.parametrize("how", HOSTILE)
def test_a_hostile_reply_costs_its_source_and_neither_time_nor_the_others(how: str) -> None:
    with served(on_one_source(HOSTILE[how])) as (_, model):
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        answer, pause = asyncio.run(_ask(model))
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before  # kB; the server's own part included
    assert [g.status for g in answer.sources] == ["failed"] + ["supports"] * 4
    assert answer.text == "anna lind"
    assert pause < 1.0
    assert grown < 150_000


@pytest.mark.parametrize("streamed", [False, True])
def test_the_largest_reply_grows_with_max_tokens(streamed: bool) -> None:
    def said(model: OpenAIModel) -> str:
        if streamed:
            return "".join(p for p in model.stream(Prompt("x")) if isinstance(p, str))
        return model.generate([Prompt("x")], "final")[0].text or ""

    long = "quite-some-long-word " * 6_000
    with served(lambda prompt: Reply(long), max_tokens=6_000) as (_, model):
        assert said(model).strip() == long.strip()
    with served(lambda prompt: Reply(long), max_tokens=16) as (_, model):
        if streamed:
            with pytest.raises(ModelError, match="max_tokens"):
                said(model)
        else:
            assert "max_tokens" in (model.generate([Prompt("x")], "final")[0].error or "")


STREAMS = {
    "an event of 600 kB of empty choices": b"data: " + many_choices(600_000) + b"\n\n",
    "an event without end": b"data: " + b"a" * 65536,
    "comments without end": b": thinking\n" * 5000,
    "data without a word": b"data:\n" * 5000,
    "gzip": b"",
}


@pytest.mark.parametrize("how", STREAMS)
def test_a_hostile_stream_ends_in_an_error_and_stalls_nobody(how: str) -> None:
    fault = HOSTILE["gzip that nobody asked for"] if how == "gzip" else endless(STREAMS[how])

    async def read(model: OpenAIModel) -> str:
        return "".join([piece async for piece in defense(model).astream(QUESTION, PASSAGES)])

    async def ask(model: OpenAIModel) -> float:
        await model.agenerate([Prompt("Note, warm")], "final")
        raised: list[ModelError] = []

        async def reading() -> None:
            try:
                await read(model)
            except ModelError as error:
                raised.append(error)

        try:
            _, pause = await longest_pause(reading())
        finally:
            await model.aclose()
        assert raised
        return pause

    with served(in_the_end(fault)) as (_, model):
        assert asyncio.run(ask(model)) < 1.0
        with pytest.raises(ModelError):
            list(defense(model).stream(QUESTION, PASSAGES))


@pytest.mark.parametrize("ends", [b"\n", b"\r\n", b"\r"])
def test_events_are_the_same_however_the_stream_is_cut(ends: bytes) -> None:
    lines = [b": hello", b"event: x", b'data: {"a": 1}', b"", b"data:2", b"", b"data: 3", b"", b"data: [DONE]", b""]
    stream = ends.join(lines)
    for size in (1, 2, 3, 7, len(stream)):
        events = Events(1000)
        assert [e for at in range(0, len(stream), size) for e in events.read(stream[at : at + size])] == [
            b'{"a": 1}', b"2", b"3",
        ]  # fmt: skip
        assert events.ended
    late = Events(1000)
    assert [*late.read(b"data: 1"), *late.read(b"\n")] == [b"1"]


def test_the_deadline_of_a_request_includes_the_reading_of_its_reply() -> None:
    release = threading.Event()

    async def ask(url: str) -> float:
        connection = Connection("m", url, None, path="/chat/completions")
        request = {"model": "m", "messages": []}
        began = time.perf_counter()
        try:
            with pytest.raises(TimeoutError, match="within 1 s"):
                await await_within(1.0, connection.reply(request, lambda body: release.wait(20)))
            return time.perf_counter() - began
        finally:
            release.set()
            await connection.aclose()

    with LoopbackServer(lambda request: Reply("a" * 50_000), whole_requests=True) as server:
        assert asyncio.run(ask(server.url)) < 15  # not the 20 s that the reading takes


# --- where the passages go


@pytest.mark.parametrize("status", [301, 303, 307, 308])
def test_a_redirect_is_refused_and_nobody_else_gets_the_passages(status: int) -> None:
    with LoopbackServer(lambda prompt: "Eve Black") as other:
        moved = Reply("moved", status=status, headers={"Location": f"{other.url}/chat/completions?again=1"})
        with served(on_one_source(moved), attempts=3) as (server, model):
            answer = defense(model).answer(QUESTION, PASSAGES)
            assert len(server.requests) == 6
        with served(in_the_end(moved)) as (_, model), pytest.raises(ModelError, match="redirects are not followed"):
            list(defense(model).stream(QUESTION, PASSAGES))
        assert other.requests == []
    assert [g.status for g in answer.sources] == ["failed"] + ["supports"] * 4
    assert f"HTTP {status}: redirects are not followed" in (answer.sources[0].error or "")


@pytest.mark.parametrize("end", ["", "?api_key=quite-secret-17", "#quite-secret-17", "/?api-version=quite-secret-17"])
def test_an_address_with_a_password_or_a_query_is_refused_as_clients_would_log_it(end: str) -> None:
    with pytest.raises(ModelError, match="extra_headers") as caught:
        OpenAIModel("m", f"http://anna:hunter2-x@model.example/v1{end}")
    assert "quite-secret-17" not in str(caught.value)
    assert "hunter2-x" not in str(caught.value)
    assert "model.example/v1" in str(caught.value)
