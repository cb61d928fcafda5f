"""A retriever that finds enough sources for a vote: it wraps any other and fetches more until they are there."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import (
    ConfigurableFieldSpec,
    Runnable,
    RunnableConfig,
    ensure_config,
    patch_config,
    run_in_executor,
)
from langchain_core.runnables.utils import get_unique_config_specs
from pydantic import ConfigDict, Field, SkipValidation, model_validator

from langchain_robustrag.documents import Isolation, checked_documents
from langchain_robustrag.more_documents import COUNTS, asked_for, finds_all
from robustrag_integrations._util.steps import adriven, driven
from robustrag_integrations.grouping.passages import grouping_of
from robustrag_integrations.grouping.quotas import (
    SHORTAGE,
    Gathered,
    Gathering,
    SourceQuota,
    gather,
)

_log = logging.getLogger(__name__)
_Manager = CallbackManagerForRetrieverRun | AsyncCallbackManagerForRetrieverRun


class DiverseRetriever(BaseRetriever):
    """Retrieves documents of enough different sources, so that others can outvote a lie.

    A retriever's four best documents may all come from one file. This one asks the wrapped retriever for more, four
    times as many in each round, until `sources` origins are there, and keeps the best `per_origin` documents of each,
    in the order in which they were found. Where there are fewer origins, the log says so, and so do the answer's
    warnings, by the documents' metadata entry `robustrag_shortage`. The wrapped retriever is never changed: copies of
    it are asked.

    Attributes:
        retriever: any retriever whose number of documents can be set: vector stores (`search_kwargs`), those with `k`
            or `top_k`, and wrappers around such ones (ensembles, query rewriters, rerankers, `with_config`, ...).
            Each round calls it once, with all that it calls: put a `DiverseRetriever` inside of a reranker or a query
            rewriter that asks a model, rather than around it.
        sources: number of origins that are wanted.
        per_origin: maximum number of documents of one origin.
        group_by: what an origin is; the same as the chain's `group_by`.
        max_passages: the retriever is never asked for more documents than this at once.
        fetch: for a retriever whose number cannot be set: a function from the query and a number to that many
            documents, best first; fewer mean that there are no more.
        afetch: its asynchronous twin; None: `fetch` in a thread.

    Raises:
        UnknownRetrieverError: the retriever's number cannot be set; the message says what to do.
        ValueError: a number is not a whole number of at least 1.

    Examples:
        ```python
        retriever = DiverseRetriever(vector_store.as_retriever(), sources=10)
        rag = create_robust_retrieval_chain(retriever, llm)
        ```
    """

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

    retriever: SkipValidation[Runnable[str, Any]] | None = None
    sources: int = 10
    per_origin: int = 2
    group_by: Any = "origin"
    max_passages: int = 1000
    fetch: Callable[[str, int], Sequence[Document]] | None = Field(default=None, exclude=True)
    afetch: Callable[[str, int], Awaitable[Sequence[Document]]] | None = Field(default=None, exclude=True)

    def __init__(self, retriever: Runnable[str, Any] | None = None, **settings: Any) -> None:
        super().__init__(**{"retriever": retriever, **settings})

    @model_validator(mode="after")
    def _check(self) -> DiverseRetriever:
        quota = self._quota()
        grouping_of(1, self.group_by)
        if self.fetch is None and self.afetch is None:
            if not isinstance(self.retriever, Runnable):
                raise ValueError(f"retriever must be a retriever, got {type(self.retriever).__name__}; or pass fetch=")
            asked_for(self.retriever, quota.sources)
        return self

    def invoke(self, input: str, config: RunnableConfig | None = None, **kwargs: Any) -> list[Document]:
        """Retrieve documents; further arguments reach the wrapped retriever."""
        return super().invoke(input, config, **kwargs, caller_config=config)

    async def ainvoke(self, input: str, config: RunnableConfig | None = None, **kwargs: Any) -> list[Document]:
        """`invoke` without blocking the event loop."""
        return await super().ainvoke(input, config, **kwargs, caller_config=config)

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, **kwargs: Any
    ) -> list[Document]:
        config, others = _apart(kwargs)

        def fetch(k: int) -> Sequence[Document]:
            if self.fetch is not None:
                return checked_documents(self.fetch(query, k))
            if self.retriever is None:
                raise ValueError("this DiverseRetriever has afetch= alone; pass fetch= as well, or call ainvoke")
            retriever, child = asked_for(self.retriever, k, _child(config, run_manager, k))
            return checked_documents(retriever.invoke(query, child, **others))

        return self._said(driven(self._gathering(), fetch))

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun, **kwargs: Any
    ) -> list[Document]:
        config, others = _apart(kwargs)

        async def fetch(k: int) -> Sequence[Document]:
            if self.afetch is not None:
                return checked_documents(await self.afetch(query, k))
            if self.fetch is not None:
                return checked_documents(await run_in_executor(config, self.fetch, query, k))
            assert self.retriever is not None  # noqa: S101 - checked when it was made
            retriever, child = asked_for(self.retriever, k, _child(config, run_manager, k))
            return checked_documents(await retriever.ainvoke(query, child, **others))

        return self._said(await adriven(self._gathering(), fetch))

    def _quota(self) -> SourceQuota:
        return SourceQuota(self.sources, self.per_origin, self.max_passages)

    def _gathering(self) -> Gathering[Document]:
        places = Isolation(group_by=self.group_by).places
        by_function = self.fetch is not None or self.afetch is not None
        return gather(self._quota(), places, exact=by_function or finds_all(self.retriever))

    def _said(self, found: Gathered[Document]) -> list[Document]:
        if not found.shortage:
            return list(found.items)
        _log.warning("%s", found.shortage)
        said = {SHORTAGE: found.shortage}
        return [item.model_copy(update={"metadata": {**(item.metadata or {}), **said}}) for item in found.items]

    @property
    def config_specs(self) -> list[ConfigurableFieldSpec]:
        """The configurable fields of the wrapped retriever."""
        return get_unique_config_specs(self.retriever.config_specs if self.retriever is not None else [])


def _apart(kwargs: dict[str, Any]) -> tuple[RunnableConfig | None, dict[str, Any]]:
    """Split the wrapped retriever's arguments from the caller's config; the number of documents is set here."""
    others = {name: value for name, value in kwargs.items() if name not in (*COUNTS, "caller_config", "verbose")}
    return kwargs.get("caller_config"), others


def _child(config: RunnableConfig | None, manager: _Manager, k: int) -> RunnableConfig:
    return patch_config(ensure_config(config), callbacks=manager.get_child(f"k={k}"))
