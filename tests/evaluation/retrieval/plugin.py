"""Retrievers as users name them: `tests.evaluation.retrieval.plugin:...`. Embeddings count letters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from robustrag_integrations.attacks.scene import Scene
from robustrag_integrations.grouping.passages import Passage

embedded: list[str] = []


def letters(text: str) -> list[float]:
    return [float(text.lower().count(c)) + 0.01 for c in "abcdefghijklmnopqrstuvwxyz?"]


class LangChainLike:
    """What an embedding of LangChain can be asked."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        embedded.extend(texts)
        return [letters(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        return letters(text)


class LlamaIndexLike:
    """What an embedding of LlamaIndex can be asked."""

    def get_text_embedding_batch(self, texts: list[str]) -> list[list[float]]:
        return [letters(text) for text in texts]

    def get_query_embedding(self, text: str) -> list[float]:
        return letters(text)


embedding = LangChainLike()


def make_embedding() -> LlamaIndexLike:
    return LlamaIndexLike()


def langchain(passages: Sequence[Passage]) -> Any:
    """A vector store of LangChain, asked for four documents."""
    from langchain_core.vectorstores import InMemoryVectorStore

    from tests.langchain.test_diverse import Letters

    store = InMemoryVectorStore(Letters())
    store.add_texts([p.text for p in passages], [dict(p.metadata) for p in passages])
    return store.as_retriever()


def llamaindex(passages: Sequence[Passage]) -> Any:
    """A vector index of LlamaIndex."""
    from llama_index.core import VectorStoreIndex
    from llama_index.core.schema import TextNode

    from tests.llamaindex.fakes import WordEmbedding

    nodes = [TextNode(text=p.text, id_=str(p.id)) for p in passages]
    return VectorStoreIndex(nodes, embed_model=WordEmbedding()).as_retriever(similarity_top_k=10)


def asks(scene: Scene) -> str:
    """An attack that is as near to the question as can be: the question."""
    return scene.question


def texts(passages: Sequence[Passage]) -> Callable[[str, int], list[str]]:
    """A function that gives bare texts, longest first."""
    ranked = sorted((p.text for p in passages), key=lambda text: -len(text))
    return lambda query, k: ranked[:k]


def strange(passages: Sequence[Passage]) -> Callable[[str, int], list[str]]:
    """Gives what is in no corpus."""
    return lambda query, k: ["something else"]


def failing(passages: Sequence[Passage]) -> Any:
    raise RuntimeError("the index is down")


def nothing(passages: Sequence[Passage]) -> int:
    return 7


def authored() -> list[Passage]:
    """A corpus whose passages name their authors."""
    return [
        Passage(f"Land {i % 3} has a capital, writes author {i}.", source=f"page-{i}", metadata={"author": f"a{i % 4}"})
        for i in range(12)
    ]
