"""Asking any LangChain retriever for more documents, without changing it.

There is no common setting for how many documents a retriever finds: vector stores have `search_kwargs["k"]`, others a
field `k` or `top_k`, and wrappers have retrievers inside. Each is copied here with the number changed.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.runnables.configurable import DynamicRunnable
from langchain_core.vectorstores import VectorStoreRetriever

COUNTS = (
    *("k", "top_k", "top_n", "top_k_results", "similarity_top_k", "num_results", "number_of_results", "n_results"),
    *("max_results", "limit"),
)
_INSIDE = ("retriever", "base_retriever", "retrievers", "bound", "runnable", "fallbacks")
_BEHIND = ("base_compressor", "transformers")  # rerankers and filters, which may keep a number of documents, too
_DEEPEST = 10  # wrappers in wrappers


class UnknownRetrieverError(TypeError):
    """The way to ask this retriever for more documents is not known; the message says what to set."""


def asked_for(
    retriever: Runnable[str, Any], k: int, config: RunnableConfig | None = None
) -> tuple[Runnable[str, Any], RunnableConfig | None]:
    """Return a copy of the retriever that finds `k` documents, and its call's config; wrapped ones are copied, too.

    Raises:
        UnknownRetrieverError: it has no number that is known.
    """
    if isinstance(retriever, DynamicRunnable):  # configurable_fields and configurable_alternatives
        retriever, config = retriever.prepare(config)
    return _changed(retriever, k, 0), config


def finds_all(retriever: object) -> bool:
    """True if fewer documents than requested mean that there are no more.

    Wrappers may drop or merge documents, and some stores filter what they have found; no more is known of a store
    than what its own retriever asks it.
    """
    return type(retriever) is VectorStoreRetriever and not {"fetch_k", "filter"} & retriever.search_kwargs.keys()


def _changed(retriever: Any, k: int, depth: int) -> Any:
    if isinstance(retriever, DynamicRunnable):
        retriever = retriever.prepare()[0]
    fields = type(retriever).model_fields if hasattr(type(retriever), "model_fields") else {}
    values = {name: getattr(retriever, name) for name in fields}
    update: dict[str, Any] = {}
    for name, value in values.items():
        if _is_inside(name, value) and depth < _DEEPEST:
            several = [value] if isinstance(value, Runnable) else value
            copies = [_changed(inner, k, depth + 1) for inner in several]
            update[name] = copies[0] if isinstance(value, Runnable) else copies
    if update:
        if "k" in (bound := values.get("kwargs") or {}):  # retriever.bind(k=4)
            update["kwargs"] = {**bound, "k": k}
    elif isinstance(values.get("search_kwargs"), Mapping):
        update["search_kwargs"] = _search(retriever, values["search_kwargs"], k)
    update |= {name: k for name in COUNTS if name in values and _is_count(values[name])}
    if not update:
        raise UnknownRetrieverError(
            f"how many documents {type(retriever).__name__} finds cannot be set: it has none of "
            f"{', '.join(COUNTS[:2])}, search_kwargs, ...; pass fetch=, a function from a query and a number to that "
            "many documents, best first"
        )
    return retriever.model_copy(
        update=update | {n: _behind(values[n], k) for n in _BEHIND if values.get(n) is not None}
    )


def _search(retriever: Any, given: Mapping[str, Any], k: int) -> dict[str, Any]:
    """Return the vector store's arguments. `fetch_k` counts the candidates that it looks at, for MMR or a filter."""
    search = {**given, "k": k}
    store = getattr(getattr(retriever, "vectorstore", None), "similarity_search", None)
    filters = "filter" in given and store is not None and "fetch_k" in inspect.signature(store).parameters
    kind = getattr(retriever, "search_type", None)
    if "fetch_k" in given or filters or getattr(kind, "value", kind) == "mmr":
        search["fetch_k"] = max(int(given.get("fetch_k") or 0), 2 * k)
    return search


def _behind(value: Any, k: int) -> Any:
    """Return rerankers and filters that keep `k` documents."""
    if isinstance(value, (list, tuple)):
        return [_behind(inner, k) for inner in value]
    fields = type(value).model_fields if hasattr(type(value), "model_fields") else {}
    update: dict[str, Any] = {name: k for name in COUNTS if name in fields and _is_count(getattr(value, name))}
    update |= {name: _behind(getattr(value, name), k) for name in _BEHIND if name in fields}
    return value.model_copy(update=update) if update else value


def _is_inside(name: str, value: Any) -> bool:
    """True if a field holds something that retrieves: a retriever, or any Runnable in a wrapper's field."""
    kind = Runnable if name in _INSIDE else BaseRetriever
    if isinstance(value, (str, bytes)):
        return False
    return isinstance(value, kind) or (
        isinstance(value, Sequence) and bool(value) and all(isinstance(inner, kind) for inner in value)
    )


def _is_count(value: Any) -> bool:
    return value is None or (isinstance(value, int) and not isinstance(value, bool))
