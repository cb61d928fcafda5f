"""DiverseRetriever finds enough sources through any retriever, keeps scores and events, and changes nothing."""

from __future__ import annotations

from typing import Any

import pytest
from llama_index.core import VectorStoreIndex
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.indices.keyword_table import KeywordTableIndex
from llama_index.core.postprocessor import SimilarityPostprocessor
from llama_index.core.retrievers import QueryFusionRetriever
from llama_index.core.schema import NodeRelationship, NodeWithScore, RelatedNodeInfo, TextNode
from llama_index.core.utils import globals_helper

from llamaindex_robustrag import DiverseRetriever, RobustRAGQueryEngine, assert_defended
from tests.llamaindex.fakes import FactReader, WordEmbedding

QUERY = "Who runs the mill?"


def corpus(flood: int = 30, others: int = 12) -> list[TextNode]:
    """A planted document whose many nodes are nearest to the query, and others."""
    texts = [("flood", f"{QUERY} Mallory{i}") for i in range(flood)]
    texts += [(f"doc-{i}", f"Anna Lind runs the mill {'since ' * (i + 1)}") for i in range(others)]
    return [node(source, text, f"{source}/{i}") for i, (source, text) in enumerate(texts)]


def node(source: str, text: str, name: str) -> TextNode:
    return TextNode(text=text, id_=name, relationships={NodeRelationship.SOURCE: RelatedNodeInfo(node_id=source)})


def index(nodes: list[TextNode] | None = None) -> VectorStoreIndex:
    return VectorStoreIndex(corpus() if nodes is None else nodes, embed_model=WordEmbedding())


def sources(found: list[NodeWithScore]) -> list[str]:
    return [n.node.ref_doc_id or "" for n in found]


def check(found: list[NodeWithScore], wanted: int = 10, each: int = 2) -> None:
    counts = {s: sources(found).count(s) for s in sources(found)}
    assert len(counts) == wanted
    assert max(counts.values()) <= each
    assert "flood" in counts


def bm25() -> Any:
    module = pytest.importorskip("llama_index.retrievers.bm25", reason="llama-index-retrievers-bm25 is not installed")
    return module.BM25Retriever.from_defaults(nodes=corpus(), similarity_top_k=2)


def keywords() -> Any:
    table = KeywordTableIndex.from_documents([], llm=FactReader())
    for n in corpus():
        table.index_struct.add_node(["mill"], n)
        table.docstore.add_documents([n])
    return table.as_retriever(retriever_mode="simple")


@pytest.mark.parametrize(
    "make", [lambda: index().as_retriever(), bm25, keywords],
    ids=["vectors", "bm25", "keywords"],
)  # fmt: skip
async def test_every_retriever_is_asked_until_ten_sources_are_there(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(globals_helper, "_stopwords", ["the"])  # the oldest LlamaIndex downloads them
    retriever = make()
    before = {name: repr(value) for name, value in vars(retriever).items()}
    diverse = DiverseRetriever(retriever)
    found = diverse.retrieve(QUERY)
    check(found)
    assert {name: repr(value) for name, value in vars(retriever).items()} == before
    assert sources(await diverse.aretrieve(QUERY)) == sources(found)


def test_wrappers_take_diverse_retrievers_inside() -> None:
    def fused(inner: BaseRetriever) -> QueryFusionRetriever:
        return QueryFusionRetriever([inner], num_queries=1, similarity_top_k=20, use_async=False, llm=FactReader())

    check(fused(DiverseRetriever(index().as_retriever())).retrieve(QUERY))
    with pytest.raises(TypeError, match="DiverseRetriever around each retriever inside"):
        DiverseRetriever(fused(index().as_retriever()))


def test_an_engine_with_postprocessors_behind_it_has_ten_sources_and_is_defended() -> None:
    engine = RobustRAGQueryEngine.from_args(
        DiverseRetriever(index().as_retriever()),
        llm=FactReader(),
        node_postprocessors=[SimilarityPostprocessor(similarity_cutoff=0.0)],
    )
    assert_defended(engine, QUERY)
    assert len(engine.query(QUERY).metadata["robustrag"]["sources"]) == 10
