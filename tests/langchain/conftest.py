"""What all tests of the LangChain integration share: no network but loopback, and the bundled reader."""

from __future__ import annotations

import pytest

pytest.importorskip("langchain_core", reason="the extra langchain is not installed")

from tests.langchain.fakes import ListRetriever, planted, truthful


@pytest.fixture
def poisoned() -> ListRetriever:
    documents = truthful(5)
    return ListRetriever(documents=[documents[0], planted(), *documents[1:]])
