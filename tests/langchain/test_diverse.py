"""DiverseRetriever finds enough sources through any retriever, and changes none of them."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import BaseDocumentCompressor, Document
from langchain_core.embeddings import Embeddings
from langchain_core.retrievers import BaseRetriever
from langchain_core.vectorstores import InMemoryVectorStore

from langchain_robustrag import DiverseRetriever
from tests.contract.langchain import Letters

QUERY = "Who runs the mill?"


def corpus(flood: int = 30, others: int = 12) -> list[Document]:
    """A planted file whose many pieces are nearest to the query, and others."""
    planted = [Document(f"{QUERY} {QUERY} Mallory {i}", metadata={"source": "flood.pdf"}) for i in range(flood)]
    names = ["Anna Lind runs the mill", "The mill is run by Anna Lind", "Lind, who runs the mill"]
    return [*planted, *(Document(f"{names[i % 3]} {'x' * i}", metadata={"source": f"{i}.txt"}) for i in range(others))]


def store(documents: list[Document] | None = None, embedding: Embeddings | None = None) -> InMemoryVectorStore:
    made = InMemoryVectorStore(embedding or Letters())
    made.add_documents(corpus() if documents is None else documents)
    return made


def sources(documents: list[Document]) -> list[str]:
    return [d.metadata["source"] for d in documents]


def check(found: list[Document], wanted: int = 10, each: int = 2) -> None:
    counts = {s: sources(found).count(s) for s in sources(found)}
    assert len(counts) == wanted
    assert max(counts.values()) <= each
    assert "flood.pdf" in counts


@pytest.mark.parametrize("kind", ["similarity", "mmr"])
def test_a_vector_store_is_asked_until_ten_sources_are_there(kind: str) -> None:
    retriever = store().as_retriever(search_type=kind)
    plain = retriever.invoke(QUERY)
    assert len(plain) == 4
    before = retriever.model_dump_json(include={"search_kwargs", "search_type"})
    check(DiverseRetriever(retriever).invoke(QUERY))
    assert retriever.model_dump_json(include={"search_kwargs", "search_type"}) == before


@pytest.mark.parametrize("name", ["ensemble", "compression", "own"])
def test_wrappers_take_diverse_retrievers_inside(name: str) -> None:
    module = pytest.importorskip("langchain_classic.retrievers")

    def wrapped(inner: Any) -> Any:
        return {
            "ensemble": lambda: module.EnsembleRetriever(retrievers=[inner, inner], weights=[0.5, 0.5]),
            "compression": lambda: module.ContextualCompressionRetriever(base_compressor=All(), base_retriever=inner),
            "own": lambda: Sieve(searched=inner),
        }[name]()

    check(wrapped(DiverseRetriever(store().as_retriever())).invoke(QUERY))
    with pytest.raises(TypeError, match="DiverseRetriever around each retriever inside"):
        DiverseRetriever(wrapped(store().as_retriever()))


class All(BaseDocumentCompressor):
    """A reranker that keeps all documents."""

    def compress_documents(self, documents: Any, query: str, callbacks: Any = None) -> Any:
        return documents


class Seen(BaseCallbackHandler):
    def __init__(self) -> None:
        self.started: list[tuple[str, bool]] = []
        self.ended: list[int] = []

    def on_retriever_start(self, serialized: Any, query: str, *, parent_run_id: Any = None, **kwargs: Any) -> None:
        self.started.append((kwargs.get("name", ""), parent_run_id is None))

    def on_retriever_end(self, documents: Any, **kwargs: Any) -> None:
        self.ended.append(len(documents))


def test_callbacks_see_the_wrapped_retriever_as_a_child() -> None:
    handler = Seen()
    found = DiverseRetriever(store().as_retriever()).invoke(QUERY, {"callbacks": [handler], "run_name": "mine"})
    assert handler.started[0] == ("mine", True)
    assert handler.started[1:]
    assert all(start == ("VectorStoreRetriever", False) for start in handler.started[1:])
    assert handler.ended[-1] == len(found)


class Sieve(BaseRetriever):
    """A user's wrapper, with a retriever under a name of its own."""

    searched: BaseRetriever

    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        return [d for d in self.searched.invoke(query) if not d.page_content.endswith("13")]
