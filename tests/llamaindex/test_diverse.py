"""DiverseRetriever finds enough sources through any retriever, keeps scores and events, and changes nothing."""

from __future__ import annotations

from typing import Any

import pytest
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.indices.keyword_table import KeywordTableIndex
from llama_index.core.postprocessor import SimilarityPostprocessor
from llama_index.core.retrievers import QueryFusionRetriever
from llama_index.core.utils import globals_helper

from llamaindex_robustrag import DiverseRetriever, RobustRAGQueryEngine, assert_defended
from tests.contract.drivers import driver
from tests.contract.test_retrieval import QUERY, Search, check, corpus
from tests.llamaindex.fakes import FactReader

SEARCH = Search(driver("llamaindex"))
NODES = [item.node for item in SEARCH.items(corpus())]


def bm25() -> Any:
    module = pytest.importorskip("llama_index.retrievers.bm25", reason="llama-index-retrievers-bm25 is not installed")
    return module.BM25Retriever.from_defaults(nodes=NODES, similarity_top_k=2)


def keywords() -> Any:
    table = KeywordTableIndex.from_documents([], llm=FactReader())
    for n in NODES:
        table.index_struct.add_node(["mill"], n)
        table.docstore.add_documents([n])
    return table.as_retriever(retriever_mode="simple")


@pytest.mark.parametrize("make", [bm25, keywords])
async def test_every_retriever_is_asked_until_ten_sources_are_there(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(globals_helper, "_stopwords", ["the"])  # the oldest LlamaIndex downloads them
    retriever = make()
    before = {name: repr(value) for name, value in vars(retriever).items()}
    diverse = DiverseRetriever(retriever)
    check(SEARCH.find(diverse))
    assert {name: repr(value) for name, value in vars(retriever).items()} == before
    assert await SEARCH.afind(diverse) == SEARCH.find(diverse)


def test_wrappers_take_diverse_retrievers_inside() -> None:
    def fused(inner: BaseRetriever) -> QueryFusionRetriever:
        return QueryFusionRetriever([inner], num_queries=1, similarity_top_k=20, use_async=False, llm=FactReader())

    check(SEARCH.find(fused(DiverseRetriever(SEARCH.store()))))
    with pytest.raises(TypeError, match="DiverseRetriever around each retriever inside"):
        DiverseRetriever(fused(SEARCH.store()))


def test_an_engine_with_postprocessors_behind_it_has_ten_sources_and_is_defended() -> None:
    engine = RobustRAGQueryEngine.from_args(
        DiverseRetriever(SEARCH.store()),
        llm=FactReader(),
        node_postprocessors=[SimilarityPostprocessor(similarity_cutoff=0.0)],
    )
    assert_defended(engine, QUERY)
    assert len(engine.query(QUERY).metadata["robustrag"]["sources"]) == 10
