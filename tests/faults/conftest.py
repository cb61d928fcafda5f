"""What all tests with misbehaving servers share."""

from __future__ import annotations

import asyncio
import functools

import pytest

from tests.faults.clients import client_of
from tests.faults.matrix import closing, pieces
from tests.helpers.openai_server import LoopbackServer, obedient_reader


@functools.cache
def warm(kind: str) -> None:
    """What is loaded once and stays (modules, a pool of connections) is not a leak."""
    with LoopbackServer(obedient_reader) as server, client_of(kind, server.url) as client:
        assert client.ask()["radius"] == 2
        assert "".join(client.stream()) == asyncio.run(closing(client, pieces(client)))


@pytest.fixture(autouse=True)
def _warm(request: pytest.FixtureRequest) -> None:
    warm(request.getfixturevalue("kind") if "kind" in request.fixturenames else "core")
