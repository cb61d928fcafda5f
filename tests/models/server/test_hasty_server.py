"""Requests over connections that the server closes at random moments: each is answered once, by its own reply."""

from __future__ import annotations

import asyncio
import json
import random
import re
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest

pytest.importorskip("httpx")

from robustrag_integrations.models.server.model import OpenAIModel
from robustrag_integrations.text.prompts import Prompt

_LENGTH = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)


class _Hasty(asyncio.Protocol):
    """One connection. Answers whole requests with their own words, in pieces, after a moment, and then may hang up."""

    def __init__(self, chance: random.Random, answered: Counter[str]) -> None:
        self._chance, self._answered = chance, answered
        self._data, self._gone = b"", False
        self._transport: Any = None

    def connection_made(self, transport: Any) -> None:
        self._transport = transport

    def connection_lost(self, error: Exception | None) -> None:
        self._gone = True

    def data_received(self, data: bytes) -> None:
        self._data += data
        head, end, rest = self._data.partition(b"\r\n\r\n")
        found = _LENGTH.search(head)
        if not end or found is None or len(rest) < int(found[1]) or self._transport.is_closing():
            return
        self._data = b""
        asyncio.get_running_loop().create_task(self._answer(json.loads(rest)["messages"][-1]["content"]))

    async def _answer(self, prompt: str) -> None:
        await asyncio.sleep(self._chance.random() * 0.004)
        choice = {"index": 0, "message": {"role": "assistant", "content": f"of {prompt}"}, "finish_reason": "stop"}
        body = json.dumps({"choices": [choice]}).encode()
        manner = self._chance.random()
        last = b"Connection: close\r\n" if manner < 0.1 else b""
        whole = b"HTTP/1.1 200 OK\r\n%bContent-Length: %d\r\n\r\n%b" % (last, len(body), body)
        cut = self._chance.randrange(1, len(whole))
        self._transport.write(whole[:cut])
        await asyncio.sleep(self._chance.random() * 0.002)
        if self._gone:
            return
        self._transport.write(whole[cut:])
        self._answered[prompt] += 1
        if manner < 0.25:  # said, or not
            await asyncio.sleep(self._chance.choice([0.0, self._chance.random() * 0.003]))
            self._transport.close()


@contextmanager
def hasty_server(seed: int) -> Iterator[tuple[str, Counter[str]]]:
    """Its address, and how often each prompt was answered in full."""
    loop, answered, chance = asyncio.new_event_loop(), Counter[str](), random.Random(seed)
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()

    async def listen() -> Any:
        return await loop.create_server(lambda: _Hasty(chance, answered), "127.0.0.1", 0, backlog=256)

    server = asyncio.run_coroutine_threadsafe(listen(), loop).result(10)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1", answered
    finally:
        loop.call_soon_threadsafe(server.close)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        loop.close()


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another try comes soon."""
    monkeypatch.setattr("robustrag_integrations.models.caller._FIRST_WAIT", 0.005)


def test_threads_get_their_own_replies_and_the_server_counts_each_request_once() -> None:
    with hasty_server(1) as (address, answered):
        model = OpenAIModel("loopback", address, attempts=20, max_concurrency=24)

        def ask(thread: int) -> list[tuple[str, str | None]]:
            said = []
            for turn in range(12):
                prompts = [f"thread {thread}, turn {turn}, group {group}" for group in range(6)]
                replies = model.generate([Prompt(text) for text in prompts], "isolated")
                said += [(text, reply.text) for text, reply in zip(prompts, replies, strict=True)]
            return said

        with ThreadPoolExecutor(8) as threads:
            found = [pair for said in threads.map(ask, range(8)) for pair in said]
        model.close()
    assert len(found) == 8 * 12 * 6
    assert [said for text, said in found if said != f"of {text}"] == []
    assert answered == Counter(text for text, _ in found)
