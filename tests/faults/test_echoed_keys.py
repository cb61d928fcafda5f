"""A server that sends the client's key back, in whatever way: it stays out of everything that a caller may log."""

from __future__ import annotations

import asyncio
import base64
import json
import logging
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import quote

import pytest

from tests.faults.clients import CLIENTS, SOURCES, client_of
from tests.faults.matrix import closing, in_the_end, on_sources, pieces
from tests.helpers.openai_server import LoopbackServer, Reply

pytest.importorskip("httpx", reason="needs the extra openai")
pytestmark = pytest.mark.usefixtures("no_server_settings")

KEY = "tenant/7+uneasy:lamp~horse=9"
HTML = f"<html><body>Authorization: Bearer {KEY}</body></html>".encode()


def _error(words: str, **more: Any) -> Reply:
    return Reply(words, status=401, **more)


def _refusal(words: str) -> Reply:
    message = {"role": "assistant", "content": None, "refusal": words}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    common = {"id": "1", "object": "chat.completion", "created": 0, "model": "m"}
    return Reply(body=json.dumps({**common, "choices": [choice]}).encode())


ECHOES: dict[str, Reply] = {
    "as it is": _error(f"Incorrect API key provided: {KEY}."),
    "in a header": _error(f"you sent {{'Authorization': 'Bearer {KEY}'}}"),
    "a piece of it": _error(f"no key begins with {KEY[:14]}..."),
    "Base64": _error(f"Basic {base64.b64encode(KEY.encode()).decode()}"),
    "a page": Reply(body=HTML, status=500, headers={"X-Page": "1"}),
    "another form of error": Reply(body=json.dumps({"detail": [{"input": KEY}]}).encode(), status=422),
    "a refusal": _refusal(f"I refuse {KEY}"),
    "the key of a JSON object": Reply(body=json.dumps({KEY: [KEY]}).encode()),
    "text that is no JSON": Reply(body=f"{KEY} {{".encode()),
}
STYLES = ("asked", "awaited", "streamed", "streamed asynchronously")
PLACES = {"one source": lambda r: on_sources(r, range(1)), "all sources": lambda r: on_sources(r, range(SOURCES)),
          "final call": in_the_end}  # fmt: skip


def outcome(client: Any, style: str) -> Any:
    """The answer as data or text, or the exception."""
    try:
        if style == "asked":
            return client.ask()
        if style == "streamed":
            return "".join(client.stream())
        return asyncio.run(closing(client, client.aask() if style == "awaited" else pieces(client)))
    except Exception as error:
        return error


def readable(found: Any) -> Iterator[str]:
    """Everything that somebody may print or log of it."""
    seen: set[int] = set()
    while isinstance(found, BaseException) and id(found) not in seen:
        seen.add(id(found))
        yield from (str(found), repr(found), repr(found.args), repr(vars(found)))
        record = logging.LogRecord("app", logging.ERROR, "", 0, "failed", (), (type(found), found, found.__traceback__))
        yield logging.Formatter().format(record)
        found = found.__cause__ or found.__context__
    if not isinstance(found, BaseException):
        yield repr(found)


def forms() -> list[str]:
    spelt = [KEY, quote(KEY, safe=""), base64.b64encode(KEY.encode()).decode(), json.dumps(KEY)[1:-1]]
    return [form[at : at + 9] for form in spelt for at in range(len(form) - 8)]


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("echo", ECHOES)
@pytest.mark.parametrize("kind", CLIENTS)
def test_an_echoed_key_reaches_nobody(kind: str, echo: str, place: str, caplog: pytest.LogCaptureFixture) -> None:
    behaviour: Callable[..., Any] = PLACES[place](ECHOES[echo])
    caplog.set_level(logging.INFO)
    for style in STYLES:
        with LoopbackServer(behaviour) as server, client_of(kind, server.url, key=KEY) as client:
            found = outcome(client, style)
            assert KEY in server.headers[0]["authorization"]
        said = "\n".join((*readable(found), caplog.text))
        if place != "one source" and ECHOES[echo].status != 200:
            assert isinstance(found, Exception), found
        assert [form for form in forms() if form in said] == []
