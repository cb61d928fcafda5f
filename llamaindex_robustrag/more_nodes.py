"""Asks any LlamaIndex retriever for more nodes, without changing it.

Most retrievers have a number `similarity_top_k`, others one of another name, and wrappers have retrievers inside. Each
is copied here with the number changed.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.tools import RetrieverTool

_COUNTS = (
    *("similarity_top_k", "_similarity_top_k", "top_k", "_top_k", "k", "_k", "number_of_results", "top_n"),
    *("limit", "_limit"),
    *("num_chunks_per_query", "_max_top_k", "_empty_query_top_k", "_sparse_top_k", "_hybrid_top_k"),
)
_GIVE_ALL = frozenset({"SummaryIndexRetriever", "TreeAllLeafRetriever", "TreeRootRetriever", "EmptyIndexRetriever"})
_DEEPEST = 10  # wrappers in wrappers


class UnknownRetrieverError(TypeError):
    """The way to ask this retriever for more nodes is not known; the message says what to set."""


def asked_for(retriever: BaseRetriever, k: int) -> BaseRetriever:
    """Return a copy of the retriever that finds `k` nodes; wrapped retrievers are copied, too.

    Raises:
        UnknownRetrieverError: it has no number that is known.
    """
    changed: BaseRetriever = _changed(retriever, k, 0)
    return changed


def _changed(retriever: Any, k: int, depth: int) -> Any:
    if isinstance(retriever, RetrieverTool):
        made: Any = copy.copy(retriever)
        made._retriever = _changed(retriever.retriever, k, depth)
        return made
    kind = type(retriever).__name__
    changed = copy.copy(retriever)
    inside = [name for name, value in vars(retriever).items() if depth < _DEEPEST and _holds_retrievers(name, value)]
    for attribute in inside:
        setattr(changed, attribute, _all_changed(getattr(retriever, attribute), k, depth))
    counts = [attribute for attribute in _COUNTS if _is_count(vars(retriever).get(attribute))]
    for attribute in counts:
        setattr(changed, attribute, _at_most_all(retriever, k))
    if not inside and not counts and kind not in _GIVE_ALL:
        raise UnknownRetrieverError(
            f"how many nodes {kind} finds cannot be set: it has no similarity_top_k or the like; pass fetch=, a "
            "function from a QueryBundle and a number to that many nodes, best first"
        )
    return changed


def _all_changed(value: Any, k: int, depth: int) -> Any:
    if isinstance(value, Mapping):
        return {name: _changed(inner, k, depth + 1) for name, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_changed(inner, k, depth + 1) for inner in value]
    return _changed(value, k, depth + 1)


def _holds_retrievers(name: str, value: Any) -> bool:
    if name == "object_map":  # the objects behind index nodes
        return False
    held = list(value.values()) if isinstance(value, Mapping) else value
    listed = held if isinstance(held, (list, tuple)) else [held]
    return bool(listed) and all(isinstance(inner, (BaseRetriever, RetrieverTool)) for inner in listed)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _at_most_all(retriever: Any, k: int) -> int:
    """Cap the number at the nodes that BM25 has: it refuses to return more."""
    scores = getattr(getattr(retriever, "bm25", None), "scores", None)
    there = scores.get("num_docs") if isinstance(scores, Mapping) else None
    return k if there is None else max(min(k, int(there)), 1)
