"""A retriever that finds enough sources for a vote: it wraps any other and fetches more until they are there."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableConfig, run_in_executor
from langchain_core.vectorstores import VectorStoreRetriever
from pydantic import ConfigDict, Field, SkipValidation, model_validator

from langchain_robustrag.documents import checked_documents, document_places
from robustrag_integrations._util.steps import adriven, driven
from robustrag_integrations.grouping.passages import grouping_of
from robustrag_integrations.grouping.quotas import (
    SHORTAGE,
    Gathering,
    Shortage,
    SourceQuota,
    gather,
)

_log = logging.getLogger(__name__)
_COUNTS = (
    *("k", "top_k", "top_n", "top_k_results", "similarity_top_k", "num_results", "number_of_results", "n_results"),
    *("max_results", "limit"),
)


class DiverseRetriever(BaseRetriever):
    """Retrieves documents of enough different sources, so that others can outvote a lie.

    A retriever's four best documents may all come from one file. This one asks the wrapped retriever for more, four
    times as many in each round, until `sources` origins are there, and keeps the best `per_origin` documents of each,
    in the order in which they were found. Where there are fewer origins, the log says so, and so do the answer's
    warnings, by the documents' metadata entry `robustrag_shortage`. The wrapped retriever is never changed: copies of
    it are asked.

    Attributes:
        retriever: any retriever whose number of documents can be set: vector stores (`search_kwargs`), and those with
            `k` or `top_k`. Ensembles, rerankers and query rewriters take `DiverseRetriever`s inside.
        sources: number of origins that are wanted.
        per_origin: maximum number of documents of one origin.
        group_by: the unit that counts as one source; the same as the chain's `group_by`.
        max_passages: the retriever is never asked for more documents than this at once.
        fetch: for a retriever whose number cannot be set: a function from the query and a number to that many
            documents, best first; fewer mean that there are no more.

    Raises:
        TypeError: the retriever's number cannot be set; the message says what to do.
        ValueError: a number is not a whole number of at least 1.

    Examples:
        ```python
        retriever = DiverseRetriever(vector_store.as_retriever(), sources=10)
        rag = create_robust_retrieval_chain(retriever, llm)
        ```
    """

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

    retriever: SkipValidation[BaseRetriever] | None = None
    sources: int = 10
    per_origin: int = 2
    group_by: Any = "origin"
    max_passages: int = 1000
    fetch: Callable[[str, int], Sequence[Document]] | None = Field(default=None, exclude=True)

    def __init__(self, retriever: BaseRetriever | None = None, **settings: Any) -> None:
        super().__init__(**{"retriever": retriever, **settings})

    @model_validator(mode="after")
    def _check(self) -> DiverseRetriever:
        quota = self._quota()
        grouping_of(1, self.group_by)
        if self.fetch is None:
            if not isinstance(self.retriever, BaseRetriever):
                raise ValueError(
                    f"retriever must be a retriever, got {type(self.retriever).__name__}; a vector store has "
                    "as_retriever(); or pass fetch="
                )
            _asked_for(self.retriever, quota.sources)
        return self

    def _get_relevant_documents(self, query: str, *, run_manager: CallbackManagerForRetrieverRun) -> list[Document]:
        def fetch(k: int) -> Sequence[Document]:
            if self.fetch is not None:
                return checked_documents(self.fetch(query, k))
            config: RunnableConfig = {"callbacks": run_manager.get_child(f"k={k}")}
            return checked_documents(_asked_for(self.retriever, k).invoke(query, config))

        return self._said(driven(self._gathering(), fetch))

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun
    ) -> list[Document]:
        async def fetch(k: int) -> Sequence[Document]:
            if self.fetch is not None:
                return checked_documents(await run_in_executor(None, self.fetch, query, k))
            config: RunnableConfig = {"callbacks": run_manager.get_child(f"k={k}")}
            return checked_documents(await _asked_for(self.retriever, k).ainvoke(query, config))

        return self._said(await adriven(self._gathering(), fetch))

    def _quota(self) -> SourceQuota:
        return SourceQuota(self.sources, self.per_origin, self.max_passages)

    def _gathering(self) -> Gathering[Document]:
        inner = self.retriever  # some stores filter what they have found
        finds_all = type(inner) is VectorStoreRetriever and not {"fetch_k", "filter"} & inner.search_kwargs.keys()
        return gather(
            self._quota(),
            lambda found: document_places(found, self.group_by),
            exact=self.fetch is not None or finds_all,
        )

    def _said(self, found: tuple[list[Document], Shortage | None]) -> list[Document]:
        items, shortage = found
        if not shortage:
            return items
        _log.warning("%s", shortage)
        said = {SHORTAGE: shortage}
        return [item.model_copy(update={"metadata": {**(item.metadata or {}), **said}}) for item in items]


def _asked_for(retriever: Any, k: int) -> Any:
    """Return a copy of the retriever that finds `k` documents; TypeError if there is no number to set, or if it asks
    other retrievers."""
    values = {name: getattr(retriever, name) for name in type(retriever).model_fields}
    update: dict[str, Any] = {name: k for name in _COUNTS if name in values and isinstance(values[name], int | None)}
    if isinstance(search := values.get("search_kwargs"), Mapping):
        kind = values.get("search_type")
        is_mmr = getattr(kind, "value", kind) == "mmr"
        candidates = {"fetch_k": max(int(search.get("fetch_k") or 0), 2 * k)}  # that it looks at for MMR or a filter
        update["search_kwargs"] = {**search, "k": k, **(candidates if is_mmr or "fetch_k" in search else {})}
    listed = [value if isinstance(value, (list, tuple)) else [value] for value in values.values()]
    if not update or any(isinstance(inner, BaseRetriever) for inners in listed for inner in inners):
        raise TypeError(
            f"how many documents {type(retriever).__name__} finds cannot be set: put a DiverseRetriever around each "
            "retriever inside of it, or pass fetch=, a function from a query and a number to that many documents"
        )
    return retriever.model_copy(update=update)
