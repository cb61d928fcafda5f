"""What all tests of the LangChain integration share: no network but loopback, and the bundled reader."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

pytest.importorskip("langchain_core", reason="the extra langchain is not installed")

from tests.langchain.fakes import PROMPT, ListRetriever, Reader, planted, truthful

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Refuse connections to other machines, in the words of pytest-socket where it is installed."""
    if importlib.util.find_spec("pytest_socket"):
        for item in items:
            if HERE in item.path.parents:
                item.add_marker(pytest.mark.allow_hosts(["127.0.0.1", "::1", "localhost"]))


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
