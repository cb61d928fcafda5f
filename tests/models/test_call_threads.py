"""Synchronous calls that ran out of time: hung up on, bounded in number and memory, and never waited for."""

from __future__ import annotations

import asyncio
import http.client
import itertools
import resource
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from robustrag_integrations import CallableModel, KeywordAggregation
from robustrag_integrations.models.call_threads import MOST_LEFT, CallThreads
from robustrag_integrations.prompts import Prompt
from tests.helpers.openai_server import LoopbackServer, Reply


def until(holds: Callable[[], bool], patience: float = 20.0) -> bool:
    deadline = time.monotonic() + patience
    while not holds() and time.monotonic() < deadline:
        time.sleep(0.01)
    return holds()


def pour(handler: Any, piece: bytes, pause: float) -> None:
    """A body that does not come to its end; where it is poured slowly, its length is known."""
    length = b"Content-Length: 200000000\r\n" if pause else b""
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n" + length + b"\r\n")
    while not handler.server.robustrag_closing.wait(pause):
        handler.wfile.write(piece)
        handler.wfile.flush()


@contextmanager
def pouring(piece: bytes, pause: float) -> Iterator[LoopbackServer]:
    with LoopbackServer(lambda prompt: Reply(act=lambda h: pour(h, piece, pause))) as server:
        yield server


def by_urllib(url: str) -> str:
    request = urllib.request.Request(f"{url}/chat/completions", b'{"prompt": ""}')
    with urllib.request.urlopen(request) as reply:
        return reply.read().decode()


def by_http_client(url: str) -> str:
    connection = http.client.HTTPConnection(url.partition("://")[2].partition("/")[0])
    try:
        connection.request("POST", "/v1/chat/completions", b'{"prompt": ""}')
        return connection.getresponse().read().decode()
    finally:
        connection.close()


def by_httpx(url: str) -> str:
    httpx = pytest.importorskip("httpx")
    with httpx.Client(timeout=600, trust_env=False) as client:
        return client.post(f"{url}/chat/completions", json={"prompt": ""}).text


def by_socket(url: str) -> str:
    host, _, port = url.partition("://")[2].partition("/")[0].partition(":")
    body = b'{"prompt": ""}'
    with socket.create_connection((host, int(port))) as connection:
        connection.sendall(b"POST /v1/x HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        return b"".join(iter(Reader(connection).read, b"")).decode()


class Reader:
    def __init__(self, connection: socket.socket) -> None:
        self._sock = connection

    def read(self) -> bytes:
        return self._sock.recv(65536)


CLIENTS = {"urllib": by_urllib, "http.client": by_http_client, "httpx": by_httpx, "a socket": by_socket}


@pytest.mark.parametrize("asynchronous", [False, True])
@pytest.mark.parametrize("client", CLIENTS)
def test_a_download_ends_soon_after_its_call_was_given_up(client: str, asynchronous: bool) -> None:
    threads = CallThreads()
    with pouring(b".", 0.05) as server:
        ask = (lambda *given: asyncio.run(threads.acall(*given))) if asynchronous else threads.call
        with pytest.raises(TimeoutError, match=r"no answer within 0\.3 s"):
            ask(0.3, CLIENTS[client], server.url)
        assert until(lambda: not threads.left)
        assert server.gone.wait(20)


def test_a_client_that_connects_again_is_hung_up_on_again() -> None:
    threads, tries = CallThreads(), itertools.count()

    def stubborn(url: str) -> str:
        for _ in range(4):
            next(tries)
            try:
                return by_urllib(url)
            except (OSError, http.client.HTTPException):
                continue
        return ""

    with pouring(b".", 0.02) as server:
        with pytest.raises(TimeoutError):
            threads.call(0.2, stubborn, server.url)
        assert until(lambda: not threads.left)
    assert next(tries) == 4


def test_what_a_server_without_end_sends_does_not_pile_up() -> None:
    threads = CallThreads()
    with pouring(b"." * (1 << 20), 0.0) as server:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        for _ in range(3):
            with pytest.raises(TimeoutError):
                threads.call(0.05, by_httpx, server.url)
        assert until(lambda: not threads.left, 10)
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before  # kB
    assert grown < 600_000


def test_calls_that_compute_for_ever_are_bounded_in_number_and_the_rest_fail_at_once() -> None:
    release = threading.Event()
    model = CallableModel(lambda prompt: "a" if "fine" in prompt else str(release.wait(60)), timeout=0.1, attempts=1)
    before = threading.active_count()
    try:
        for _ in range(8):
            model.generate([Prompt("x")] * 7, "isolated")
        assert threading.active_count() - before <= MOST_LEFT + 1 + 10  # and those of the calls under way
        began = time.monotonic()
        [response] = model.generate([Prompt("fine")], "isolated")
        assert "calls that ran out of time are still running, and no more than 32 may" in (response.error or "")
        assert time.monotonic() - began < 5
    finally:
        release.set()
    assert until(lambda: model.generate([Prompt("fine")], "isolated")[0].text == "a")


def test_an_event_loop_does_not_wait_for_a_function_that_was_given_up() -> None:
    release = threading.Event()

    def llm(prompt: str) -> str:
        if "hang" in prompt:
            release.wait(60)
        return "a"

    model = CallableModel(llm, timeout=0.2, attempts=1)
    began = time.monotonic()
    answer = asyncio.run(KeywordAggregation(model, extractor=lambda t: {t}).aanswer("q", ["hang", "x", "x"]))
    assert time.monotonic() - began < 20
    release.set()
    assert [g.status for g in answer.groups] == ["failed", "supports", "supports"]


async def test_cancelling_hangs_up_on_a_synchronous_call() -> None:
    threads = CallThreads()
    with pouring(b".", 0.02) as server:
        task = asyncio.create_task(threads.acall(None, by_urllib, server.url))
        while not server.now:
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await asyncio.to_thread(until, lambda: not threads.left)


COLLECTED = """
import gc, threading
from robustrag_integrations.models.call_threads import hang_up

class Held: pass

done, threads = threading.Event(), []
for number in range(300):
    threads.append(threading.Thread(target=done.wait, daemon=True))
    threads[-1].start()
    gc.disable()
    held = Held()
    held.itself, held.local = held, threading.local()
    held.local.number = number
    del held
    gc.set_threshold(gc.get_count()[0] + number % 12 + 1)  # a collection a few objects later
    gc.enable()
    hang_up(threads[-1])
    assert gc.isenabled()
gc.disable()
hang_up(threads[0])
assert not gc.isenabled()
"""


def test_looking_for_a_threads_connection_ends_though_the_collector_is_due() -> None:
    """A collection at the wrong moment would stop the whole process for ever, before Python 3.12."""
    subprocess.run([sys.executable, "-c", COLLECTED], check=True, timeout=120)


def test_nobody_hangs_up_on_a_connection_that_other_calls_share() -> None:
    class HTTP2Connection:
        def __init__(self, connection: socket.socket) -> None:
            self._sock = connection

        def read(self) -> str:
            return Reader(self._sock).read().decode()

    ours, theirs = socket.socketpair()
    threads = CallThreads()
    with ours, theirs:
        with pytest.raises(TimeoutError):
            threads.call(0.1, HTTP2Connection(ours).read)
        time.sleep(0.3)
        assert threads.left == 1
        theirs.sendall(b"an answer")
        assert until(lambda: not threads.left)


def test_nobody_hangs_up_on_a_connection_that_the_call_does_not_read_from() -> None:
    class Cached:
        def __init__(self, connection: socket.socket) -> None:
            self.cache = Reader(connection)
            self.go_on = threading.Event()

        def ask(self) -> str:
            return self.wait()

        def wait(self) -> str:
            self.go_on.wait(20)
            return ""

    ours, theirs = socket.socketpair()
    threads = CallThreads()
    with ours, theirs:
        asked = Cached(ours)
        with pytest.raises(TimeoutError):
            threads.call(0.1, asked.ask)
        time.sleep(0.3)
        theirs.sendall(b"kept")
        assert asked.cache.read() == b"kept"
        asked.go_on.set()
        assert until(lambda: not threads.left)


@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_stream_is_given_up_with_its_thread(asynchronous: bool) -> None:
    def lines(url: str) -> Iterator[str]:
        request = urllib.request.Request(f"{url}/chat/completions", b'{"prompt": ""}')
        with urllib.request.urlopen(request) as reply:
            for line in reply:
                yield line.decode()

    async def read(pieces: Any) -> list[str]:
        return [piece async for piece in pieces]

    threads = CallThreads()
    with pouring(b".", 0.02) as server:  # never a whole line
        asks = {True: lambda p: asyncio.run(read(threads.astream(0.3, p))), False: lambda p: [*threads.stream(0.3, p)]}
        with pytest.raises(TimeoutError, match="no complete answer"):
            asks[asynchronous](lines(server.url))
        assert until(lambda: not threads.left)


def test_pieces_do_not_pile_up_for_a_reader_who_takes_his_time() -> None:
    made = itertools.count()

    def pieces() -> Iterator[str]:
        while True:
            yield str(next(made))

    threads = CallThreads()
    begun = threads.stream(60, pieces())
    assert [next(begun) for _ in range(3)] == ["0", "1", "2"]
    time.sleep(0.5)
    assert next(made) < 1000
    begun.close()
    assert until(lambda: not threads.left)


async def test_asynchronous_streams_give_all_pieces_and_the_iterators_own_error() -> None:
    def pieces(end: Exception | None) -> Iterator[str]:
        for number in range(1000):
            yield str(number)
        if end is not None:
            raise end

    threads = CallThreads()
    assert [p async for p in threads.astream(60, pieces(None))] == [str(n) for n in range(1000)]
    broken = threads.astream(None, pieces(ConnectionError("reset")))
    assert [await anext(broken) for _ in range(1000)] == [str(n) for n in range(1000)]
    with pytest.raises(ConnectionError, match="reset"):
        await anext(broken)
    assert until(lambda: not threads.left)


@pytest.mark.parametrize("timeout", [None, 60])
async def test_a_function_that_raises_stop_iteration_fails_as_any_other(timeout: float | None) -> None:
    def ended(prompt: str) -> str:
        return next(iter(()))

    model = CallableModel(ended, timeout=timeout, attempts=1)
    [response] = await asyncio.wait_for(model.agenerate([Prompt("x")], "isolated"), 20)
    assert "StopIteration" in (response.error or "")
    assert "StopIteration" in (model.generate([Prompt("x")], "isolated")[0].error or "")


async def test_an_asynchronous_stream_runs_a_synchronous_function_in_a_thread() -> None:
    def pieces(prompt: str) -> Iterator[str]:
        yield "one "
        time.sleep(0.05)
        yield threading.current_thread().name

    model = CallableModel(lambda prompt: "a", stream_fn=pieces)
    assert [piece async for piece in model.astream(Prompt("x"))] == ["one ", "robustrag-call"]
