"""Retrievers and indexes in front of a robust engine: does one node come from one document, and who chose it?"""

from __future__ import annotations

from typing import Any

from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.indices import (
    DocumentSummaryIndex,
    EmptyIndex,
    KeywordTableIndex,
    MultiModalVectorStoreIndex,
    RAKEKeywordTableIndex,
    SimpleKeywordTableIndex,
    SummaryIndex,
    VectorStoreIndex,
)
from llama_index.core.indices.document_summary.retrievers import (
    DocumentSummaryIndexEmbeddingRetriever,
    DocumentSummaryIndexLLMRetriever,
)
from llama_index.core.indices.empty.retrievers import EmptyIndexRetriever
from llama_index.core.indices.keyword_table.retrievers import (
    KeywordTableGPTRetriever,
    KeywordTableRAKERetriever,
    KeywordTableSimpleRetriever,
)
from llama_index.core.indices.knowledge_graph.retrievers import KGTableRetriever, KnowledgeGraphRAGRetriever
from llama_index.core.indices.list.retrievers import (
    SummaryIndexEmbeddingRetriever,
    SummaryIndexLLMRetriever,
    SummaryIndexRetriever,
)
from llama_index.core.indices.property_graph.retriever import PGRetriever
from llama_index.core.indices.property_graph.sub_retrievers.base import BasePGRetriever
from llama_index.core.indices.struct_store.sql_retriever import NLSQLRetriever, SQLRetriever
from llama_index.core.indices.tree.all_leaf_retriever import TreeAllLeafRetriever
from llama_index.core.indices.tree.select_leaf_embedding_retriever import TreeSelectLeafEmbeddingRetriever
from llama_index.core.indices.tree.select_leaf_retriever import TreeSelectLeafRetriever
from llama_index.core.indices.tree.tree_root_retriever import TreeRootRetriever
from llama_index.core.retrievers import (
    AutoMergingRetriever,
    QueryFusionRetriever,
    RecursiveRetriever,
    RouterRetriever,
    TransformRetriever,
    VectorIndexAutoRetriever,
    VectorIndexRetriever,
)

from llamaindex_robustrag.diverse import DiverseRetriever
from llamaindex_robustrag.wiring.identity import changes, is_named, is_trusted
from llamaindex_robustrag.wiring.walk import Place, Steps, Walk
from robustrag_integrations.audit import Finding

# They give each document's nodes as they are, and no document decides about another's.
APART: tuple[type, ...] = (
    AutoMergingRetriever,
    DocumentSummaryIndexEmbeddingRetriever,
    EmptyIndexRetriever,
    KeywordTableGPTRetriever,
    KeywordTableRAKERetriever,
    KeywordTableSimpleRetriever,
    QueryFusionRetriever,
    RecursiveRetriever,
    RouterRetriever,
    SummaryIndexEmbeddingRetriever,
    SummaryIndexRetriever,
    TransformRetriever,
    VectorIndexAutoRetriever,
    VectorIndexRetriever,
)
JOINT: tuple[type, ...] = (
    BasePGRetriever,
    DocumentSummaryIndexLLMRetriever,
    KGTableRetriever,
    KnowledgeGraphRAGRetriever,
    NLSQLRetriever,
    PGRetriever,
    SQLRetriever,
    SummaryIndexLLMRetriever,
    TreeAllLeafRetriever,
    TreeRootRetriever,
    TreeSelectLeafEmbeddingRetriever,
    TreeSelectLeafRetriever,
)
INDEXES: tuple[type, ...] = (
    DocumentSummaryIndex,
    EmptyIndex,
    KeywordTableIndex,
    MultiModalVectorStoreIndex,
    RAKEKeywordTableIndex,
    SimpleKeywordTableIndex,
    SummaryIndex,
    VectorStoreIndex,
)
_ELSEWHERE = {
    "llama_index.retrievers.bm25.": frozenset({"BM25Retriever"}),
    "llama_index.core.indices.multi_modal.": frozenset({"MultiModalVectorIndexRetriever"}),
}
_INSIDE = (
    "_retriever",
    "_retrievers",
    "_retrievers_dict",
    "_vector_retriever",
    "_query_engine_dict",
    "object_map",
)


def apart(walk: Walk, thing: BaseRetriever, place: Place) -> Steps:
    """What it asks: other retrievers, and engines, whose answers become nodes."""
    for name, engine in (getattr(thing, "object_map", None) or {}).items():
        if isinstance(engine, BaseQueryEngine) and not is_trusted(engine, walk.trusted):
            yield Finding(
                "engine-as-node",
                f"{place.path}.object_map[{name!r:.60}]",
                type(engine).__name__,
                "its answer becomes a node together with the metadata of all its source nodes, so one document's "
                "metadata can speak for all of them",
                "ask it through RecursiveRetriever(root, retriever_dict=..., query_engine_dict=...), which takes the "
                "answer alone",
            )
    yield from walk.parts(thing, place, *_INSIDE)


def diverse(walk: Walk, thing: DiverseRetriever, place: Place) -> Steps:
    """What it asks: a retriever, or functions of the user's."""
    for name in ("_fetch", "_afetch"):
        function = getattr(thing, name, None)
        if function is not None and not is_trusted(function, walk.trusted):
            yield Finding(
                "unknown-retriever",
                f"{place.path}.{name}",
                type(thing).__name__,
                f"whether what {name[1:]}= finds comes from one document each, and whether a model read several to "
                "choose, is not known",
                "if each node comes from one document, keeps its SOURCE and is chosen by itself, pass that function "
                "in trusted=[...]",
            )
    yield from apart(walk, thing, place)


def joint(walk: Walk, thing: BaseRetriever, place: Place) -> Steps:
    """Documents meet before the synthesizer sees them."""
    yield Finding(
        "joint-retriever",
        place.path,
        type(thing).__name__,
        "it merges several documents into one node, or lets a model read several of them to choose, so one document "
        "can speak for others or keep them out",
        "use a retriever that gives each document's own nodes, such as VectorStoreIndex(...).as_retriever() or "
        "BM25Retriever",
    )


def other(walk: Walk, thing: Any, place: Place) -> Steps:
    """A retriever that is not in llama-index-core."""
    kind = type(thing)
    for base in kind.__mro__:
        for package, names in _ELSEWHERE.items():
            if is_named(base, package, names) and not changes(thing, base):
                yield from apart(walk, thing, place)
                return
    yield Finding(
        "unknown-retriever",
        place.path,
        kind.__name__,
        "whether its nodes come from one document each, and whether a model read several to choose them, is not known",
        "if each node comes from one document, keeps its SOURCE and is chosen by itself, pass "
        f"trusted=[{kind.__name__}]",
    )
    yield from apart(walk, thing, place)
