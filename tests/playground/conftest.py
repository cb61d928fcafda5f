from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from robustrag_integrations import Passage
from robustrag_integrations.corpus import BM25Index, Library
from robustrag_integrations.evaluation.run.cache import CallCache
from robustrag_integrations.models.providers import NamedModel
from robustrag_integrations.playground.answering import Models
from robustrag_integrations.playground.state import Row, State

NAMES = ("python:tests.playground.gullible:answer", "python:tests.playground.gullible:slow")

LIBRARY = Library(BM25Index([Passage(f"Anna Lind runs the mill. Page {n}.", origin=f"note{n}.txt") for n in range(5)]))
"""Documents in which the page finds passages."""


@pytest.fixture
def models(tmp_path: Path) -> Iterator[Models]:
    cache = CallCache(tmp_path)
    yield Models({name: NamedModel(name) for name in NAMES}, cache)
    cache.close()


@pytest.fixture
def state() -> State:
    """Six passages that agree."""
    rows = tuple(Row(f"The mayor of Brezar is Kilon Pemel. Page {n}.", f"site-{n}.example") for n in range(6))
    return State("Who is the mayor of Brezar?", rows, answer="Kilon Pemel", target="Jiso Labun", top_k=6)
