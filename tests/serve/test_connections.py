"""Connections: however many there are, and however slowly they send, others are answered."""

from __future__ import annotations

import json
import resource
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest

from robustrag_integrations import CallableModel
from robustrag_integrations.serve.limits import Limits
from tests.helpers.endpoint import QUESTION, TEXTS, asking, posted, service, serving
from tests.needs import needing

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


def asked(address: str, path: str, method: str = "GET") -> tuple[int, bytes]:
    connection = HTTPConnection(*where(address), timeout=20)
    try:
        connection.request(method, path)
        reply = connection.getresponse()
        return reply.status, reply.read()
    finally:
        connection.close()


def status_of(raw: socket.socket) -> int:
    return int(raw.makefile("rb").readline().split()[1])


# Many connections


@contextmanager
def limited(open_files: int, log: Path) -> Iterator[str]:
    """The address of the endpoint in a process that may have so many files open."""
    program = (
        "import logging, resource, sys\n"
        "from robustrag_integrations.serve import server\n"
        "from robustrag_integrations.serve.app import create_app\n"
        "from tests.helpers.endpoint import service\n"
        "logging.basicConfig(level=logging.WARNING)\n"
        "app = create_app(service(lambda prompt: 'Anna Lind'))\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (int(sys.argv[1]),) * 2)\n"
        "server._SILENT_SECONDS = 4\n"
        "with server.bound('127.0.0.1', 0) as listening:\n"
        "    print(listening.getsockname()[1], flush=True)\n"
        "    server.run(app, listening)\n"
    )
    with log.open("wb") as errors:
        process = subprocess.Popen(
            [sys.executable, "-c", program, str(open_files)],
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            cwd=Path(__file__).parents[2],
        )
        try:
            assert process.stdout is not None
            yield f"http://127.0.0.1:{int(process.stdout.readline())}"
        finally:
            process.terminate()
            process.communicate(timeout=60)


@needing("PROC")
@pytest.mark.parametrize(("open_files", "silent"), [(1024, 1100), (256, 400)])
def test_more_silent_connections_than_files_leave_health_and_answers(
    tmp_path: Path, open_files: int, silent: int
) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, 4096)), hard))
    log = tmp_path / "log"
    with limited(open_files, log) as address, ExitStack() as held:
        for _ in range(silent):
            connected(held, address)
        for _ in range(3):
            assert asked(address, "/healthz") == (200, b'{"status": "ok"}')
        deadline = time.monotonic() + 40
        while posted(address, asking())[0] != 200:
            assert time.monotonic() < deadline, "silent connections are not closed"
            time.sleep(0.5)
    said = log.read_text()
    assert said.count("connections are open: further ones get 503") == 1
    assert "Traceback" not in said
    assert len(said) < 2000


def test_health_has_a_place_when_idle_connections_have_all_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("robustrag_integrations.serve.server.MOST_CONNECTIONS", 3)
    with serving(service(says_anna)) as address, ExitStack() as held:
        idle = [connected(held, address) for _ in range(40)]
        assert asked(address, "/healthz")[0] == 200
        assert asked(address, "/v1/models")[0] == 503
        assert posted(address, asking())[0] == 503
        gone = [raw for raw in idle if is_closed(raw)]
        assert not set(gone) & set(idle[:3])  # who came first stays
        assert len(gone) >= 40 - 3 - 16


def is_closed(raw: socket.socket) -> bool:
    raw.setblocking(False)
    try:
        return raw.recv(1) == b""
    except BlockingIOError:
        return False
    except ConnectionResetError:
        return True


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


def test_an_answer_that_takes_longer_than_silence_may_is_not_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("robustrag_integrations.serve.server._SILENT_SECONDS", 0.2)

    def slow(prompt: str) -> str:
        time.sleep(0.5)
        return "Anna Lind"

    with serving(service(slow)) as address:
        assert posted(address, asking())[0] == 200


# Slow requests


def test_requests_that_are_never_complete_take_nobodys_place() -> None:
    limits = Limits(concurrent=1, waiting=1, body_seconds=20)
    with serving(service(says_anna, limits=limits)) as address, ExitStack() as held:
        slow = [connected(held, address, f'{HEAD}Content-Length: 1000\r\n\r\n{{"model') for _ in range(80)]
        began = time.monotonic()
        assert posted(address, asking())[0] == 200
        assert time.monotonic() - began < 10
        assert not any(map(is_closed, slow))


def test_what_unfinished_requests_hold_is_bounded_and_the_oldest_goes_first() -> None:
    limits = Limits(body_bytes=200_000, unfinished_bytes=400_000)
    with serving(service(says_anna, limits=limits)) as address, ExitStack() as held:
        slow = []
        for _ in range(3):
            slow.append(connected(held, address, f"{HEAD}Content-Length: 200000\r\n\r\n" + " " * 150_000))
            time.sleep(0.2)
        assert status_of(slow[0]) == 408
        assert not any(map(is_closed, slow[1:]))
        assert posted(address, asking())[0] == 200


# Heads that two programs may read in two ways


@pytest.mark.parametrize(
    "lines",
    [
        ("Content-Length: {size}", "Transfer-Encoding: chunked"),
        ("Transfer-Encoding: chunked", "Content-Length: 0"),
        ("Content-Length: {size}", "Authorization: Bearer wrong", "Authorization: Bearer right"),
        ("Content-Length: {size}", "Content-Type: text/plain"),
        ("Content-Length: {size}", "Content-Length: {size}"),
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
        if "Content-Length + Content-Length" in " + ".join(line.partition(":")[0] for line in lines):
            assert status_of(raw) in {400, 401}  # the parser makes one of two that are alike
            return
        assert status_of(raw) == 400


@pytest.mark.parametrize("path", ["/healthz", "/v1/models", "/v1/models/vanilla"])
def test_head_is_answered_like_get_without_a_body(path: str) -> None:
    with serving(service(says_anna)) as address:
        assert asked(address, path, "HEAD") == (200, b"")
        assert asked(address, path)[0] == 200


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
                assert "BadRequestError (HTTP 400)" in reply["error"]["message"]
    assert "Secret" not in caplog.text


def test_nor_does_the_report_of_an_answer_hold_them() -> None:
    def fails_once(prompt: str) -> str:
        if TEXTS[2] in prompt:
            raise ValueError(f"cannot read: {prompt}")
        return "Anna Lind"

    with serving(service(CallableModel(fails_once, attempts=1))) as address:
        status, _, reply = posted(address, asking(model="robustrag-keyword"))
    assert status == 200
    assert [group["error"] for group in reply["robustrag"]["answer"]["groups"]].count("ValueError") == 1
    assert "Secret" not in json.dumps(reply)
    assert QUESTION in json.dumps(reply)


# The end


def test_who_waits_when_the_server_stops_is_told_to_come_back_and_who_is_answered_is_answered() -> None:
    begun, release = threading.Event(), threading.Event()

    def waits(prompt: str) -> str:
        begun.set()
        release.wait(30)
        return "Anna Lind"

    from robustrag_integrations.serve.app import create_app
    from robustrag_integrations.serve.server import bound, configured

    replies: list[Any] = []
    with bound("127.0.0.1", 0) as listening, ExitStack() as held:
        address = f"http://127.0.0.1:{listening.getsockname()[1]}"
        server = configured(create_app(service(waits, limits=Limits(concurrent=1))), last_seconds=20)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        while not server.started:
            time.sleep(0.01)
        askers = [threading.Thread(target=lambda: replies.append(posted(address, asking()))) for _ in range(20)]
        for asker in askers:
            asker.start()
        assert begun.wait(20)
        sending = connected(held, address, f'{HEAD}Content-Length: 1000\r\n\r\n{{"model')
        time.sleep(0.5)
        server.should_exit = True
        deadline = time.monotonic() + 20
        while len(replies) < 19 and time.monotonic() < deadline:
            time.sleep(0.02)
        assert [status for status, _, _ in replies] == [503] * 19
        assert {headers["retry-after"] for _, headers, _ in replies} == {"1"}
        assert status_of(sending) == 503
        release.set()
        thread.join(30)
        for asker in askers:
            asker.join(30)
    assert replies[-1][0] == 200


def test_an_answer_that_the_server_does_not_wait_for_is_told_so() -> None:
    from robustrag_integrations.serve.app import create_app
    from robustrag_integrations.serve.server import bound, configured

    begun = threading.Event()

    async def never(prompt: str) -> str:
        import asyncio

        begun.set()
        await asyncio.sleep(60)
        return ""

    replies: list[Any] = []
    with bound("127.0.0.1", 0) as listening:
        server = configured(create_app(service(CallableModel(async_fn=never))), last_seconds=1)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        while not server.started:
            time.sleep(0.01)
        address = f"http://127.0.0.1:{listening.getsockname()[1]}"
        asker = threading.Thread(target=lambda: replies.append(posted(address, asking())))
        asker.start()
        assert begun.wait(20)
        server.should_exit = True
        asker.join(30)
        thread.join(30)
    assert (replies[0][0], replies[0][1]["retry-after"]) == (503, "1")


@pytest.mark.parametrize("seconds", [1, 30])
def test_how_long_an_idle_connection_is_kept_is_an_option(seconds: int) -> None:
    from robustrag_integrations.serve.app import create_app
    from robustrag_integrations.serve.server import bound, configured

    with bound("127.0.0.1", 0) as listening:
        server = configured(create_app(service(says_anna)), last_seconds=1, keep_alive=seconds)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            with socket.create_connection(listening.getsockname(), 20) as raw:
                raw.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
                read = b""
                while not read.endswith(b'{"status": "ok"}'):
                    read += raw.recv(4096)
                time.sleep(2.5)
                assert is_closed(raw) == (seconds == 1)
        finally:
            server.should_exit = True
            thread.join(30)
