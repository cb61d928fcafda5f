"""DiverseRetriever finds enough sources through any retriever, and changes none of them."""

from __future__ import annotations

import asyncio
import logging
import pickle
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import BaseDocumentCompressor, Document
from langchain_core.embeddings import DeterministicFakeEmbedding, Embeddings
from langchain_core.load import dumpd
from langchain_core.retrievers import BaseRetriever
from langchain_core.stores import InMemoryStore
from langchain_core.vectorstores import InMemoryVectorStore

from langchain_robustrag import DiverseRetriever, create_robust_retrieval_chain
from langchain_robustrag.diverse import UnknownRetrieverError
from tests.langchain.fakes import ListRetriever, Reader

QUERY = "Who runs the mill?"


class Letters(Embeddings):
    """A text is near the query when it has its letters: deterministic, and the nearer the more it repeats it."""

    def embed_query(self, text: str) -> list[float]:
        return [float(text.lower().count(c)) + 0.01 for c in "abcdefghijklmnopqrstuvwxyz"]

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [self.embed_query(text) for text in texts]


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


class Counted(BaseRetriever):
    """What BM25Retriever and its like are: documents and a number `k`."""

    docs: list[Document]
    k: int = 4

    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        return self.docs[: self.k]


@pytest.mark.parametrize("kind", ["similarity", "mmr"])
def test_a_vector_store_is_asked_until_ten_sources_are_there(kind: str) -> None:
    retriever = store().as_retriever(search_type=kind)
    plain = retriever.invoke(QUERY)
    assert len(plain) == 4
    before = retriever.model_dump_json(include={"search_kwargs", "search_type"})
    check(DiverseRetriever(retriever).invoke(QUERY))
    assert retriever.model_dump_json(include={"search_kwargs", "search_type"}) == before


def test_the_order_of_the_wrapped_retriever_is_kept() -> None:
    all_ranked = store().as_retriever(search_kwargs={"k": 100}).invoke(QUERY)
    found = DiverseRetriever(store().as_retriever(), per_origin=1).invoke(QUERY)
    places = [[d.page_content for d in all_ranked].index(d.page_content) for d in found]
    assert places == sorted(places)
    assert len(set(sources(found))) == 10


def test_a_flood_beyond_the_first_rounds_is_outlasted() -> None:
    documents = corpus(flood=300)
    found = DiverseRetriever(Counted(docs=documents), sources=5).invoke(QUERY)
    check(found, 5)


def test_growth_is_bounded_and_a_shortage_is_said(caplog: pytest.LogCaptureFixture) -> None:
    asked: list[int] = []

    def fetch(query: str, k: int) -> list[Document]:
        asked.append(k)
        return [Document("the same again", metadata={"source": "one"})] * k

    with caplog.at_level(logging.WARNING):
        found = DiverseRetriever(fetch=fetch, sources=3, max_passages=100).invoke(QUERY)
    assert asked == [12, 48, 100]
    assert len(found) == 2
    assert "found 1 of the 3 sources wanted, in 100 passages" in caplog.text


def test_the_end_of_the_corpus_ends_the_search(caplog: pytest.LogCaptureFixture) -> None:
    asked: list[int] = []

    def fetch(query: str, k: int) -> list[Document]:
        asked.append(k)
        return corpus(flood=2, others=3)[:k]

    with caplog.at_level(logging.WARNING):
        found = DiverseRetriever(fetch=fetch).invoke(QUERY)
    assert asked == [40]
    assert len(found) == 5
    assert "found 4 of the 10 sources wanted, in 5 passages: the retriever has no more" in caplog.text


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
    with pytest.raises(UnknownRetrieverError, match="DiverseRetriever around each retriever inside"):
        DiverseRetriever(wrapped(store().as_retriever()))


def test_a_vector_store_of_parents_is_asked_for_more() -> None:
    """A parent of 200 children that are nearest to the query, and others of one child each."""
    module = pytest.importorskip("langchain_classic.retrievers")
    documents = corpus(flood=1)
    kept: InMemoryStore = InMemoryStore()
    kept.mset([(d.metadata["source"], d) for d in documents])
    children = [
        Document(d.page_content, metadata={"doc_id": d.metadata["source"]})
        for d in documents
        for _ in range(200 if d.metadata["source"] == "flood.pdf" else 1)
    ]
    check(DiverseRetriever(module.MultiVectorRetriever(vectorstore=store(children), docstore=kept)).invoke(QUERY))


class All(BaseDocumentCompressor):
    """A reranker that keeps all documents."""

    def compress_documents(self, documents: Any, query: str, callbacks: Any = None) -> Any:
        return documents


def test_a_filter_of_the_vector_store_stays() -> None:
    search = {"filter": lambda document: document.metadata["source"] != "flood.pdf"}
    found = DiverseRetriever(store().as_retriever(search_kwargs=search)).invoke(QUERY)
    assert len(set(sources(found))) == 10
    assert "flood.pdf" not in sources(found)


def test_a_retriever_without_a_number_is_refused_with_what_to_set() -> None:
    with pytest.raises(UnknownRetrieverError, match=r"ListRetriever.*pass fetch="):
        DiverseRetriever(ListRetriever(documents=corpus()))
    documents = ListRetriever(documents=corpus())
    check(DiverseRetriever(documents, fetch=lambda query, k: documents.invoke(query)[:k]).invoke(QUERY))


@pytest.mark.parametrize("wrong", [{"sources": 0}, {"per_origin": 0}, {"max_passages": 5}, {"retriever": "text"}])
def test_wrong_settings_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        DiverseRetriever(**{"retriever": Counted(docs=[]), **wrong})


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


async def test_asynchronously_the_same_is_found_and_the_wrapped_retriever_is_awaited() -> None:
    class Awaited(Counted):
        async def _aget_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
            await asyncio.sleep(0)
            return self.docs[: self.k]

        def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
            raise AssertionError("called synchronously")

    check(await DiverseRetriever(Awaited(docs=corpus())).ainvoke(QUERY))
    same = DiverseRetriever(store().as_retriever())
    assert await same.ainvoke(QUERY) == same.invoke(QUERY)

    async def afetch(query: str, k: int) -> list[Document]:
        return corpus()[:k]

    check(await DiverseRetriever(afetch=afetch).ainvoke(QUERY))
    check(await DiverseRetriever(fetch=lambda query, k: corpus()[:k]).ainvoke(QUERY))
    with pytest.raises(ValueError, match="afetch= alone"):
        DiverseRetriever(afetch=afetch).invoke(QUERY)


def test_threads_share_one_retriever() -> None:
    retriever = DiverseRetriever(store().as_retriever())
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: sources(retriever.invoke(QUERY)), range(32)))
    assert all(each == found[0] for each in found)


def test_it_is_pickled_copied_and_written_as_langchains_own_wrappers_are() -> None:
    retriever = DiverseRetriever(Counted(docs=corpus()), sources=5)
    check(pickle.loads(pickle.dumps(retriever)).invoke(QUERY), 5)
    check(retriever.model_copy(update={"sources": 4}).invoke(QUERY), 4)
    assert dumpd(retriever)["id"][-1] == "DiverseRetriever"


def test_documents_without_a_source_are_one_source_among_others() -> None:
    documents = [Document(f"nameless {i}") for i in range(10)] + corpus(flood=5)
    found = DiverseRetriever(Counted(docs=documents), sources=5).invoke(QUERY)
    assert sum("source" not in d.metadata for d in found) == 2
    assert len({d.metadata.get("source") for d in found}) == 5


def test_a_chain_behind_it_has_ten_groups(reader: Reader) -> None:
    documents = store(embedding=DeterministicFakeEmbedding(size=8), documents=corpus())
    chain = create_robust_retrieval_chain(
        DiverseRetriever(documents.as_retriever()), reader, group_by="source", aggregation="keyword", final="always"
    )
    assert len({g.index for g in chain.invoke({"input": QUERY})["robustness"].groups}) == 10


class Sieve(BaseRetriever):
    """A user's wrapper, with a retriever under a name of its own."""

    searched: BaseRetriever

    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        return [d for d in self.searched.invoke(query) if not d.page_content.endswith("13")]


class Limited(BaseRetriever):
    limit: int = 3

    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        return corpus()[: self.limit]


def test_retrievers_of_users_are_asked_for_more() -> None:
    check(DiverseRetriever(Limited()).invoke(QUERY))
