"""What all tests of the LlamaIndex integration share: no network but loopback, and no global LLM."""

from __future__ import annotations

import pytest

pytest.importorskip("llama_index.core", reason="the extra llamaindex is not installed")

from llama_index.core import VectorStoreIndex

from tests.llamaindex.fakes import EVIL, FactReader, index_of, truthful


@pytest.fixture
def llm() -> FactReader:
    return FactReader()


@pytest.fixture
def clean() -> VectorStoreIndex:
    return index_of(truthful())


@pytest.fixture
def poisoned() -> VectorStoreIndex:
    return index_of([*truthful(), EVIL])
