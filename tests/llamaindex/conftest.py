"""What all tests of the LlamaIndex integration share: no network but loopback, and no global LLM."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path

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


@pytest.fixture(scope="session")
def reader_folder() -> Iterator[Path]:
    """The bundled reader; `ROBUSTRAG_TEST_READER` names another folder with a model trained on the same prompts."""
    pytest.importorskip("torch", reason="the extra local is not installed")
    if named := os.environ.get("ROBUSTRAG_TEST_READER"):
        yield Path(named)
        return
    from robustrag_integrations.reader import reader_path

    yield reader_path()
