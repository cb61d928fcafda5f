"""Connections: however slowly they send, others are answered."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
import time
from contextlib import ExitStack
from typing import Any

import pytest

from robustrag_integrations import CallableModel
from robustrag_integrations.serve.endpoint import Limits
from tests.helpers.endpoint import asking, create_app, posted, service, serving, started

HEAD = "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"


def says_anna(prompt: str) -> str:
    return "Anna Lind"


def where(address: str) -> tuple[str, int]:
    host, _, port = address.removeprefix("http://").partition(":")
    return host, int(port)


def connected(held: ExitStack, address: str, sent: str = "") -> socket.socket:
    raw = held.enter_context(socket.create_connection(where(address), 20))
    raw.sendall(sent.encode())
    return raw


def status_of(raw: socket.socket) -> int:
    return int(raw.makefile("rb").readline().split()[1])


# Silent connections


@pytest.mark.parametrize(
    "sent",
    ["", "GET /healthz HTT", "GET /healthz HTTP/1.1\r\nHost: localhost\r\n", "after a reply"],
    ids=["nothing", "half a line", "half a head", "after a reply"],
)
def test_a_connection_that_sends_no_request_is_closed(sent: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("robustrag_integrations.serve.server._SILENT_SECONDS", 0.3)
    with serving(service(says_anna)) as address, ExitStack() as held:
        if sent == "after a reply":
            raw = connected(held, address, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert b"200 OK" in raw.recv(4096)
            raw.sendall(b"GET /heal")
        else:
            raw = connected(held, address, sent)
        raw.settimeout(4)  # less than a kept connection has
        try:
            while raw.recv(4096):
                pass
        except ConnectionResetError:
            pass


# Slow requests


def test_requests_that_are_never_complete_take_nobodys_place() -> None:
    limits = Limits(concurrent=1, waiting=1, body_seconds=3)
    with serving(service(says_anna, limits=limits)) as address, ExitStack() as held:
        slow = [connected(held, address, f'{HEAD}Content-Length: 1000\r\n\r\n{{"model') for _ in range(80)]
        began = time.monotonic()
        assert posted(address, asking())[0] == 200
        assert time.monotonic() - began < 3
        assert status_of(slow[0]) == 408  # it is given up in the end


# Heads that two programs may read in two ways


@pytest.mark.parametrize(
    "lines",
    [
        ("Content-Length: {size}", "Transfer-Encoding: chunked"),
        ("Content-Length: {size}", "Authorization: Bearer wrong", "Authorization: Bearer right"),
        ("Content-Length: {size}", "Content-Type: text/plain"),
        ("Content-Length: {size}", "Host: evil.example"),
        ("Content-Length: {size}", "Content-Encoding: identity", "content-encoding: gzip"),
        ("Transfer-Encoding: chunked", "Transfer-Encoding: chunked"),
    ],
    ids=lambda lines: " + ".join(line.partition(":")[0] for line in lines),
)
def test_a_head_that_can_be_read_in_two_ways_is_refused_and_the_connection_closed(lines: tuple[str, ...]) -> None:
    body = json.dumps(asking()).encode()
    chunked = any(line.startswith("Transfer") for line in lines)
    data = b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body) if chunked else body
    head = HEAD + "".join(f"{line.format(size=len(body))}\r\n" for line in lines)
    with serving(service(says_anna), key="right", hosts=None) as address, ExitStack() as held:
        raw = connected(held, address, head + "\r\n")
        raw.sendall(data)
        assert status_of(raw) == 400


# What others said


def test_the_words_of_a_models_server_reach_no_client(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")

    class BadRequestError(Exception):
        pass

    def quotes(prompt: str) -> str:
        raise BadRequestError(f"Error code: 400 - {{'message': 'cannot read: {prompt}'}}")

    with serving(service(CallableModel(quotes, attempts=1))) as address:
        for stream in (False, True):
            for name in ("robustrag-keyword", "vanilla"):
                status, _, reply = posted(address, asking(model=name, stream=stream))
                assert status == 502
                assert "Secret" not in json.dumps(reply)
    assert "Secret" not in caplog.text


# The end


@pytest.mark.parametrize(("last_seconds", "status"), [(20, 200), (1, 503)])
def test_an_answer_under_way_is_finished_when_the_server_stops_or_told_to_come_back(
    last_seconds: int, status: int
) -> None:
    begun = threading.Event()

    async def slow(prompt: str) -> str:
        begun.set()
        await asyncio.sleep(3)
        return "Anna Lind"

    replies: list[Any] = []
    app = create_app(service(CallableModel(async_fn=slow)))
    with started(app, last_seconds=last_seconds) as (address, stop):
        asker = threading.Thread(target=lambda: replies.append(posted(address, asking(model="vanilla"))))
        asker.start()
        assert begun.wait(20)
        stop()
        asker.join(30)
    assert replies[0][0] == status
    assert replies[0][1].get("retry-after") == ("1" if status == 503 else None)
