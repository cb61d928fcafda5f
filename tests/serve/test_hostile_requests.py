"""Whatever a client sends, it gets an error in OpenAI's shape, and the next one is answered."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, suppress
from http.client import HTTPConnection
from typing import Any

import pytest

from robustrag_integrations.serve.endpoint import Limits
from tests.helpers.endpoint import QUESTION, asking, posted, service, serving

KEY = "a-key-that-nobody-may-read"


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    limits = Limits(body_bytes=100_000, question_chars=200)
    with serving(service(lambda p: "Anna Lind", limits=limits, documents_allowed=True)) as listening:
        yield listening


def message(**more: Any) -> dict[str, Any]:
    return {"role": "user", "content": QUESTION, **more}


HOSTILE: dict[str, tuple[int, Any]] = {
    "nothing": (400, b""),
    "no JSON": (400, b"{"),
    "not an object": (400, b"[]"),
    "no UTF-8": (400, b'{"model": "\xff"}'),
    "deep": (400, b"[" * 90_000),
    "NaN": (400, b'{"model": NaN}'),
    "many digits": (400, b'{"n": ' + b"9" * 90_000 + b"}"),
    "twice": (400, b'{"model": "vanilla", "model": "robustrag-keyword"}'),
    "too long": (413, b" " * 200_000),
    "unknown model": (404, asking(model="gpt-5\x1b[31m")),
    "no messages": (400, {"model": "vanilla"}),
    "the assistant's last": (400, asking(messages=[message(), message(role="assistant")])),
    "a tool's message": (400, asking(messages=[message(role="tool"), message()])),
    "an image": (400, asking([{"type": "image_url", "image_url": {"url": "http://evil.example"}}])),
    "too long a question": (400, asking("x" * 201)),
    "two answers": (400, asking(n=2)),
    "another format": (400, asking(response_format={"type": "json_object"})),
    "a stop word": (400, asking(stop=["Anna"])),
    "unknown parameter": (400, asking(disable_defence=True)),
    "unknown extension": (400, asking(robustrag={"radius": 5})),
    "a document without text": (400, asking(robustrag={"documents": [{"source": "x"}]})),
    "a document's unknown entry": (400, asking(robustrag={"documents": [{"text": "x", "weight": 9}]})),
    "a document's source": (400, asking(robustrag={"documents": [{"text": "x", "source": ["y"]}]})),
    "too many documents": (400, asking(robustrag={"documents": [{"text": "x"}] * 51})),
    "too long a document": (400, asking(robustrag={"documents": [{"text": "x" * 20_001}]})),
    "nothing to read": (400, asking(robustrag={"retrieve": False})),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_bad_request_is_refused_in_openais_shape(address: str, name: str) -> None:
    status, body = HOSTILE[name]
    found, _, reply = posted(address, body)
    assert found == status, reply
    assert set(reply) == {"error"}
    assert set(reply["error"]) == {"message", "type", "param", "code"}
    assert reply["error"]["message"].isprintable()
    assert len(reply["error"]["message"]) <= 1000


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Content-Type": "text/plain"}, 415),  # what a web page may send without leave
        ({"Content-Encoding": "gzip"}, 415),
        ({"Content-Length": "9" * 30}, 400),
        ({"Host": "evil.example"}, 421),
        ({"Host": "127.0.0.1.evil.example:80"}, 421),
        ({"Host": "[::1]evil.example:80"}, 421),
        ({"Host": "[::1]]:80"}, 421),
        ({"Host": "127.0.0.1:1@evil.example"}, 421),
        ({"Host": "localhost:80.evil.example"}, 421),
        ({"Host": "localhost, evil.example"}, 421),
    ],
)
def test_bad_headers_are_refused(address: str, headers: dict[str, str], status: int) -> None:
    host, _, port = address.removeprefix("http://").partition(":")
    body = json.dumps(asking()).encode()
    sent = {"Host": "localhost", "Content-Type": "application/json", "Content-Length": str(len(body)), **headers}
    lines = "".join(f"{name}: {value}\r\n" for name, value in sent.items())
    with socket.create_connection((host, int(port)), 10) as raw:
        raw.sendall(f"POST /v1/chat/completions HTTP/1.1\r\n{lines}Connection: close\r\n\r\n".encode() + body)
        first = raw.makefile("rb").readline()
    assert int(first.split()[1]) in {status, 413}


def test_headers_that_never_end_are_given_up(address: str) -> None:
    host, _, port = address.removeprefix("http://").partition(":")
    with socket.create_connection((host, int(port)), 10) as raw:
        raw.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n")
        sent = 0
        with suppress(BrokenPipeError, ConnectionResetError):
            while sent < 10_000_000:
                raw.sendall(b"X: " + b"a" * 9000 + b"\r\n")
                sent += 9000
                time.sleep(0.001)
    assert sent < 5_000_000


def test_too_many_connections_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("robustrag_integrations.serve.server.MOST_CONNECTIONS", 3)
    with serving(service(lambda p: "Anna Lind")) as listening, ExitStack() as held:
        host, _, port = listening.removeprefix("http://").partition(":")
        for _ in range(3):
            held.enter_context(socket.create_connection((host, int(port)), 10))
        connection = held.enter_context(closing(HTTPConnection(host, int(port), timeout=20)))
        connection.request("GET", "/healthz")
        assert connection.getresponse().status == 503
        held.close()
        deadline = time.monotonic() + 10
        while posted(listening, asking())[0] != 200:
            assert time.monotonic() < deadline


@pytest.mark.parametrize("path", ["/v1/models/", "/healthz/", "/v1/chat/completions/", "//evil.example/v1/models"])
def test_no_address_leads_elsewhere(address: str, path: str) -> None:
    with closing(HTTPConnection(address.removeprefix("http://"), timeout=20)) as connection:
        connection.request("GET", path, headers={"Origin": "http://localhost:3000"})
        reply = connection.getresponse()
        assert (reply.status, reply.getheader("location")) == (404, None)
        assert reply.getheader("access-control-allow-origin") is None
        assert set(json.loads(reply.read())["error"]) == {"message", "type", "param", "code"}


def test_what_does_not_change_the_answer_is_ignored_and_said(address: str) -> None:
    sent = asking(
        temperature=0.7, max_tokens=5, seed=None, user="ann", n=1, stop=[], tools=[], response_format={"type": "text"}
    )
    sent["messages"] = [
        {"role": "system", "content": "Answer in French."},
        {"role": "user", "content": "Hello"},
        {"role": "assistant", "content": None, "tool_calls": []},
        {"role": "user", "content": [{"type": "text", "text": QUESTION}]},
    ]
    status, _, reply = posted(address, sent)
    assert status == 200
    assert reply["robustrag"]["answer"]["query"] == QUESTION
    notes = reply["robustrag"]["warnings"]
    assert any("earlier messages and instructions" in note for note in notes)
    assert any("max_tokens, temperature" in note for note in notes)


@pytest.mark.parametrize("given", [None, f"Basic {KEY}", KEY, f"Bearer {KEY}x", "Bearer ", f"Bearer {KEY[:-1]}"])
def test_a_wrong_key_opens_nothing(given: str | None, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    with serving(service(lambda p: "Anna Lind"), key=KEY, hosts=None) as listening:
        status, headers, reply = posted(listening, asking(), {} if given is None else {"Authorization": given})
        assert (status, reply["error"]["code"]) == (401, "invalid_api_key")
        assert headers["www-authenticate"] == "Bearer"
        assert posted(listening, asking(), {"Authorization": f"Bearer {KEY}"})[0] == 200
        connection = HTTPConnection(listening.removeprefix("http://"), timeout=20)
        for path, expected in (("/healthz", 200), ("/v1/models", 401), (f"/v1/nothing?api_key={KEY}", 401)):
            connection.request("GET", path)
            reply_there = connection.getresponse()
            reply_there.read()
            assert reply_there.status == expected
        connection.close()
    assert "POST /v1/chat/completions: 200" in caplog.text
    for hidden in (KEY, "Secret page", QUESTION, "Anna Lind"):
        assert hidden not in caplog.text
