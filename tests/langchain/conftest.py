"""What all tests of the LangChain integration share: no network but loopback, and the bundled reader."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("langchain_core", reason="the extra langchain is not installed")

from tests.langchain.fakes import PROMPT, ListRetriever, Reader, planted, truthful


@pytest.fixture(autouse=True)
def only_loopback() -> Iterator[None]:
    """Refuse connections to other machines."""
    sockets = pytest.importorskip("pytest_socket")
    sockets.socket_allow_hosts(["127.0.0.1", "::1", "localhost"], allow_unix_socket=True)
    yield
    sockets._remove_restrictions()


@pytest.fixture
def reader() -> Reader:
    return Reader()


@pytest.fixture
def retriever() -> ListRetriever:
    return ListRetriever(documents=truthful())


@pytest.fixture
def poisoned() -> ListRetriever:
    documents = truthful(5)
    return ListRetriever(documents=[documents[0], planted(), *documents[1:]])


@pytest.fixture
def prompt() -> object:
    return PROMPT


@pytest.fixture(scope="session")
def reader_folder() -> Path:
    """The bundled reader; `ROBUSTRAG_TEST_READER` names another folder with a model trained on the same prompts."""
    pytest.importorskip("torch", reason="the extra local is not installed")
    if named := os.environ.get("ROBUSTRAG_TEST_READER"):
        return Path(named)
    reader = pytest.importorskip("robustrag_integrations.reader", reason="no reader is bundled here")
    return Path(reader.reader_path())
