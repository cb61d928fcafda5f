"""What all tests of the LlamaIndex integration share: no network but loopback, and no global LLM."""

from __future__ import annotations

import socket

import pytest

pytest.importorskip("llama_index.core", reason="the extra llamaindex is not installed")

from llama_index.core import VectorStoreIndex

from tests.llamaindex.fakes import EVIL, FactReader, index_of, truthful


@pytest.fixture(autouse=True)
def only_loopback(monkeypatch: pytest.MonkeyPatch) -> None:
    """Refuse connections to other machines."""
    connect = socket.socket.connect

    def refuse(self: socket.socket, address: object) -> None:
        if isinstance(address, tuple) and address[0] not in ("127.0.0.1", "::1", "localhost"):
            raise OSError(f"tests do not connect to {address}")
        connect(self, address)  # type: ignore[arg-type]

    monkeypatch.setattr(socket.socket, "connect", refuse)


@pytest.fixture
def llm() -> FactReader:
    return FactReader()


@pytest.fixture
def clean() -> VectorStoreIndex:
    return index_of(truthful())


@pytest.fixture
def poisoned() -> VectorStoreIndex:
    return index_of([*truthful(), EVIL])
