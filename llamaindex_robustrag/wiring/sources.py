"""What hands out retrieved texts as they are: indexes, retrievers, stores, nodes, and what makes them."""

from __future__ import annotations

from typing import Any

from llama_index.core import StorageContext
from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.chat_engine.types import BaseChatEngine
from llama_index.core.graph_stores.types import PropertyGraphStore
from llama_index.core.image_retriever import BaseImageRetriever
from llama_index.core.indices import (
    load_graph_from_storage,
    load_index_from_storage,
    load_indices_from_storage,
)
from llama_index.core.indices.base import BaseIndex
from llama_index.core.objects import ObjectIndex, ObjectRetriever
from llama_index.core.readers.base import BaseReader
from llama_index.core.schema import BaseNode, NodeWithScore
from llama_index.core.storage.docstore.types import BaseDocumentStore
from llama_index.core.storage.kvstore.types import BaseKVStore
from llama_index.core.vector_stores.types import BasePydanticVectorStore

from llamaindex_robustrag.wiring.identity import is_a, is_llama_index

_KINDS: tuple[type, ...] = (
    BaseRetriever,
    BaseImageRetriever,
    BaseIndex,
    BaseDocumentStore,
    BaseKVStore,
    BasePydanticVectorStore,
    PropertyGraphStore,
    StorageContext,
    BaseReader,
    BaseNode,
    NodeWithScore,
)
# Tools are looked at one by one, and engines have rules.
_NOT_TEXT: tuple[type, ...] = (ObjectIndex, ObjectRetriever, BaseQueryEngine, BaseChatEngine)
_MAKERS = (load_index_from_storage, load_indices_from_storage, load_graph_from_storage)
# Other libraries' retrievers and stores: a class with one of these methods, or with all of one of these sets.
_READING = ("as_retriever", "similarity_search", "_get_relevant_documents", "aretrieve")
_STORES = (frozenset({"query", "upsert"}), frozenset({"search", "upsert"}), frozenset({"query_points", "upsert"}))
# Attributes that lead to texts, whatever it is that has them.
READS = frozenset(
    {
        "_aretrieve",
        "_retrieve",
        "aget_document",
        "aget_nodes",
        "aretrieve",
        "as_chat_engine",
        "as_query_engine",
        "as_retriever",
        "asimilarity_search",
        "docstore",
        "get_document",
        "get_nodes",
        "get_relevant_documents",
        "retrieve",
        "similarity_search",
        "vector_store",
    }
)
INNER = frozenset({"_index", "_retriever", "_vector_retriever", "index", "retriever"})  # of an engine
SHOWN = frozenset(
    {"get_formatted_sources", "source_nodes", "sources"}
)  # of a response: what was outvoted is among them
ENGINE_MAKERS = frozenset({"as_chat_engine", "as_query_engine"})
_WRITES = frozenset(
    {
        "aclear",
        "adelete",
        "adelete_document",
        "adelete_nodes",
        "adelete_ref_doc",
        "add",
        "add_documents",
        "adocument_exists",
        "ainsert",
        "ainsert_nodes",
        "aput",
        "aput_all",
        "arefresh_ref_docs",
        "async_add",
        "async_add_documents",
        "aupdate_ref_doc",
        "build_index_from_nodes",
        "clear",
        "delete",
        "delete_document",
        "delete_nodes",
        "delete_ref_doc",
        "document_exists",
        "insert",
        "insert_nodes",
        "persist",
        "put",
        "put_all",
        "ref_doc_exists",
        "refresh",
        "refresh_ref_docs",
        "set_document_hash",
        "set_index_id",
        "update",
        "update_ref_doc",
        "upsert_nodes",
        "upsert_relations",
    }
)


def is_source(thing: object) -> bool:
    """Whether a thing hands out texts of documents as they are."""
    kind = type(thing)
    return not issubclass(kind, _NOT_TEXT) and (issubclass(kind, _KINDS) or _reads(kind))


def is_source_class(thing: object) -> bool:
    """Whether a class or function of LlamaIndex gives what hands out texts; nodes are made from what one has."""
    if is_a(thing, type):
        return issubclass(thing, _KINDS) and not issubclass(thing, (BaseNode, NodeWithScore))
    return any(thing is maker for maker in _MAKERS)


def writes_only(kind: type | None, method: str) -> bool:
    """Whether a method of LlamaIndex's own sources puts texts in or takes them out, and gives none back.

    Args:
        kind: the source's class; None for what LlamaIndex's own functions made.
        method: its name.
    """
    return method in _WRITES and (kind is None or is_llama_index(kind) or _inherits(kind, method))


def _inherits(kind: type, method: str) -> bool:
    owner: Any = next((base for base in kind.__mro__ if method in base.__dict__), None)
    return owner is not None and is_llama_index(owner)


def _reads(kind: type) -> bool:
    names = {name for base in kind.__mro__[:-1] for name in base.__dict__}
    return any(name in names for name in _READING) or any(store <= names for store in _STORES)
