"""DiverseRetriever finds enough sources through any retriever, and changes none of them."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import BaseDocumentCompressor, Document
from langchain_core.retrievers import BaseRetriever

from langchain_robustrag import DiverseRetriever
from tests.contract.drivers import driver
from tests.contract.test_retrieval import QUERY, Search, check

SEARCH = Search(driver("langchain"))


def test_a_search_for_unlike_documents_is_asked_until_ten_sources_are_there() -> None:
    retriever = SEARCH.store().vectorstore.as_retriever(search_type="mmr")
    assert len(retriever.invoke(QUERY)) == 4
    check(SEARCH.find(DiverseRetriever(retriever)))


@pytest.mark.parametrize("name", ["ensemble", "compression", "own"])
def test_wrappers_take_diverse_retrievers_inside(name: str) -> None:
    module = pytest.importorskip("langchain_classic.retrievers")

    def wrapped(inner: Any) -> Any:
        return {
            "ensemble": lambda: module.EnsembleRetriever(retrievers=[inner, inner], weights=[0.5, 0.5]),
            "compression": lambda: module.ContextualCompressionRetriever(base_compressor=All(), base_retriever=inner),
            "own": lambda: Sieve(searched=inner),
        }[name]()

    check(SEARCH.find(wrapped(DiverseRetriever(SEARCH.store()))))
    with pytest.raises(TypeError, match="DiverseRetriever around each retriever inside"):
        DiverseRetriever(wrapped(SEARCH.store()))


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
    found = DiverseRetriever(SEARCH.store()).invoke(QUERY, {"callbacks": [handler], "run_name": "mine"})
    assert handler.started[0] == ("mine", True)
    assert handler.started[1:]
    assert all(start == ("VectorStoreRetriever", False) for start in handler.started[1:])
    assert handler.ended[-1] == len(found)


class Sieve(BaseRetriever):
    """A user's wrapper, with a retriever under a name of its own."""

    searched: BaseRetriever

    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        return [d for d in self.searched.invoke(query) if not d.page_content.endswith("13")]
