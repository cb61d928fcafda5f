"""The application over HTTP: who may ask, what comes back when it fails, and that nobody is worked for who has left."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator
from dataclasses import replace
from http.client import HTTPConnection
from typing import Any

import pytest

pytest.importorskip("starlette", reason="the extra playground is not installed")

from robustrag_integrations._util.errors import ModelError
from robustrag_integrations.models.providers import NamedModel
from robustrag_integrations.playground.answering import Models
from robustrag_integrations.playground.app import create_app
from robustrag_integrations.playground.state import State
from robustrag_integrations.serve.endpoint import Limits
from tests.helpers.endpoint import running
from tests.playground import gullible
from tests.playground.conftest import LIBRARY


@pytest.fixture
def address(models: Models, state: State) -> Iterator[str]:
    limits = Limits(body_bytes=100_000, concurrent=1)
    with running(create_app(models, LIBRARY, state, limits=limits)) as listening:
        yield listening.removeprefix("http://")


def sent(address: str, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, dict[str, str], bytes]:
    connection = HTTPConnection(address, timeout=30)
    data = body if isinstance(body, (bytes, type(None))) else json.dumps(body).encode()
    try:
        connection.request(method, path, data, {"Content-Type": "application/json", **headers})
        reply = connection.getresponse()
        return reply.status, {k.lower(): v for k, v in reply.getheaders()}, reply.read()
    finally:
        connection.close()


@pytest.mark.parametrize("path", ["/", "/script.js", "/style.css", "/controls"])
def test_every_file_comes_with_a_policy_that_lets_nothing_in(address: str, path: str) -> None:
    status, headers, body = sent(address, "GET", path)
    assert status == 200
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "require-trusted-types-for 'script'" in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert b"http://" not in body
    assert b"https://" not in body


def test_the_page_can_be_asked_by_its_own_name_alone(address: str) -> None:
    assert sent(address, "GET", "/", Host="evil.example")[0] == 421
    assert sent(address, "POST", "/answer", {}, Host="evil.example")[0] == 421


@pytest.mark.parametrize("path", ["/answer", "/certificate"])
def test_the_page_and_the_log_say_why_a_model_cannot_be_loaded(
    state: State, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, path: str
) -> None:
    def load(self: NamedModel) -> Any:
        raise ModelError("the model 'm' lacks 1 of its weights; the key was sk-12345678")

    monkeypatch.setattr(NamedModel, "load", load)
    name = "python:tests.playground.gullible:answer"
    with running(create_app(Models({name: NamedModel(name)}), LIBRARY, state)) as listening:
        body = {"state": state.as_dict(), "corruption_size": 1, "attack": "injection"}
        _, _, said = sent(listening.removeprefix("http://"), "POST", path, body)
    for text in (said.decode(), caplog.text):
        assert "the model 'm' lacks 1 of its weights" in text
        assert "sk-12345678" not in text


@pytest.mark.parametrize("path", ["/answer", "/poison", "/certificate", "/read"])
@pytest.mark.parametrize(
    ("status", "body"),
    [
        (400, b""),
        (400, b"[]"),
        (400, b"{}"),
        (400, {"state": 7}),
        (400, {"state": {"method": "x"}}),
        (400, b"[" * 50_000),
        (413, b" " * 200_000),
    ],
)
def test_whatever_is_sent_gets_words_back(address: str, path: str, status: int, body: Any) -> None:
    found, _, said = sent(address, "POST", path, body)
    assert found == status
    assert len(json.loads(said)["error"]["message"]) > 10


def test_a_page_that_leaves_is_not_worked_for(address: str, state: State) -> None:
    slow = replace(
        state, model="python:tests.playground.gullible:slow", rows=state.rows * 8, group_by="passage", top_k=48
    )
    host, port = address.split(":")
    body = json.dumps({"state": slow.as_dict()}).encode()
    lines = (f"Host: {address}", "Content-Type: application/json", f"Content-Length: {len(body)}")
    head = "\r\n".join(["POST /answer HTTP/1.1", *lines, "", ""])
    gullible.ASKED.clear()
    with socket.create_connection((host, int(port)), timeout=20) as connection:
        connection.sendall(head.encode() + body)
        deadline = time.monotonic() + 20
        while not gullible.ASKED and time.monotonic() < deadline:
            time.sleep(0.02)
    time.sleep(1)
    asked = len(gullible.ASKED)
    time.sleep(1)
    assert 0 < asked == len(gullible.ASKED)
    assert sent(address, "POST", "/answer", {"state": state.as_dict()})[0] == 200
