"""A passage that makes the model think for ten minutes does not hold up what the other sources have decided."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from tests.faults.clients import CLIENTS, SOURCES, client_of
from tests.faults.matrix import closing, on_sources, pieces
from tests.faults.misbehaviour import FAULTS
from tests.helpers.leaks import nothing_left
from tests.helpers.openai_server import LoopbackServer

pytest.importorskip("httpx", reason="needs the extra openai")
pytestmark = pytest.mark.usefixtures("no_server_settings")

EARLY = {"method": "consensus", "stop_when_decided": True}
LIMIT = 8.0  # seconds; the sources' own replies take milliseconds, the slow one never comes


def told(client: Any, style: str) -> dict[str, Any]:
    """The report of one answer, asked in this style."""
    if style == "asked":
        return client.ask()
    if style == "awaited":
        return asyncio.run(closing(client, client.aask()))
    said = "".join(client.stream()) if style == "streamed" else asyncio.run(closing(client, pieces(client)))
    assert said == "Anna Lind"
    return client.report


@pytest.mark.parametrize("style", ["asked", "awaited", "streamed", "streamed asynchronously"])
@pytest.mark.parametrize("kind", CLIENTS)
def test_a_source_that_never_comes_to_an_end_is_not_waited_for(kind: str, style: str) -> None:
    behaviour = on_sources(FAULTS["hang for ever"].whole, range(1))
    with nothing_left(), LoopbackServer(behaviour) as server, client_of(kind, server.url, rules=EARLY) as client:
        began = time.monotonic()
        report = told(client, style)
        assert time.monotonic() - began < LIMIT
        while len(server.requests) < report["model_calls"] and time.monotonic() - began < LIMIT:
            time.sleep(0.01)  # a client that is closed while calls of its connect keeps their connections
    assert report["text"] == "Anna Lind"
    states = [source["status"] for source in report["sources"]]
    assert states[0] == "not_asked"
    assert set(states[1:]) <= {"supports", "not_asked"}
    assert report["evidence"]["decided_after"] == states.count("supports") < SOURCES
    assert len(server.requests) <= report["model_calls"] <= SOURCES
