"""A retriever that finds enough sources for a vote: it wraps any other and fetches more until they are there."""

from __future__ import annotations

import asyncio
import copy
import logging
from collections.abc import Callable, Mapping, Sequence, ValuesView
from typing import Any

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.callbacks.base import CallbackManager
from llama_index.core.schema import BaseNode, NodeWithScore, QueryBundle
from llama_index.core.tools import RetrieverTool

from llamaindex_robustrag.grouping import node_places
from robustrag_integrations._util.steps import adriven, driven
from robustrag_integrations.grouping.passages import GroupBy, grouping_of
from robustrag_integrations.grouping.quotas import SHORTAGE, Gathering, Shortage, SourceQuota, gather

_COUNTS = (
    *("similarity_top_k", "_similarity_top_k", "top_k", "_top_k", "k", "_k", "number_of_results", "top_n"),
    *("limit", "_limit", "num_chunks_per_query", "_max_top_k", "_sparse_top_k", "_hybrid_top_k"),
)
_GIVE_ALL = frozenset({"SummaryIndexRetriever", "TreeAllLeafRetriever", "TreeRootRetriever", "EmptyIndexRetriever"})
_log = logging.getLogger(__name__)


class DiverseRetriever(BaseRetriever):
    """Retrieves nodes of enough different sources, so that others can outvote a lie.

    A retriever's two best nodes may both come from one file. This one asks copies of the wrapped retriever for more,
    four times as many in each round, until `sources` origins are there, and keeps the best `per_origin` nodes of each,
    in the order in which they were found. Where there are fewer origins, the log and the answer's warnings say so.

    Args:
        retriever: any retriever whose number of nodes can be set (`similarity_top_k` and its like). Fusion, transforms,
            routers and auto-merging take `DiverseRetriever`s inside.
        sources: number of origins that are wanted.
        per_origin: maximum number of nodes of one origin.
        group_by: the unit that counts as one source; the same as the synthesizer's `group_by`.
        max_passages: the retriever is never asked for more nodes than this at once.
        fetch: for a retriever whose number cannot be set: a function from the query and a number to that many nodes,
            best first; fewer mean that there are no more.
        callback_manager: gets the retrieval's events.

    Examples:
        >>> retriever = DiverseRetriever(index.as_retriever(), sources=10)
        >>> engine = RobustRAGQueryEngine.from_args(retriever, llm=llm)
    """

    def __init__(
        self,
        retriever: BaseRetriever | None = None,
        *,
        sources: int = 10,
        per_origin: int = 2,
        group_by: GroupBy = "origin",
        max_passages: int = 1000,
        fetch: Callable[[QueryBundle, int], Sequence[NodeWithScore]] | None = None,
        callback_manager: CallbackManager | None = None,
    ) -> None:
        self._quota = SourceQuota(sources, per_origin, max_passages)
        grouping_of(1, group_by)
        if fetch is None:
            if not isinstance(retriever, BaseRetriever):
                raise TypeError(f"retriever must be a retriever, got {type(retriever).__name__}; or pass fetch=")
            _asked_for(retriever, sources)
        self._retriever, self._group_by, self._fetch = retriever, group_by, fetch
        super().__init__(callback_manager=callback_manager)

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        def fetch(k: int) -> Sequence[NodeWithScore]:
            if self._fetch is not None:
                return list(self._fetch(query_bundle, k))
            return list(_asked_for(self._retriever, k).retrieve(query_bundle))

        return self._chosen(driven(self._gathering(), fetch))

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        async def fetch(k: int) -> Sequence[NodeWithScore]:
            if self._fetch is not None:
                return list(await asyncio.to_thread(self._fetch, query_bundle, k))
            return list(await _asked_for(self._retriever, k).aretrieve(query_bundle))

        return self._chosen(await adriven(self._gathering(), fetch))

    def _gathering(self) -> Gathering[NodeWithScore]:
        exact = self._fetch is not None  # `retrieve` itself drops nodes that are copies
        return gather(self._quota, lambda nodes: node_places(nodes, self._group_by), exact=exact)

    def _chosen(self, found: tuple[list[NodeWithScore], Shortage | None]) -> list[NodeWithScore]:
        """Return the nodes; copies that report a shortage to the synthesizer, and to no model, if there is one."""
        items, shortage = found
        if shortage is None:
            return items
        _log.warning("%s", shortage)
        return [item.model_copy(update={"node": _with_shortage(item.node, shortage)}) for item in items]


def _with_shortage(node: BaseNode, shortage: Shortage) -> BaseNode:
    hidden = ("excluded_llm_metadata_keys", "excluded_embed_metadata_keys")
    update: dict[str, Any] = {name: [*getattr(node, name), SHORTAGE] for name in hidden}
    return node.model_copy(update={**update, "metadata": {**node.metadata, SHORTAGE: shortage}})


def _asked_for(retriever: Any, k: int) -> Any:
    """Return a copy of the retriever that finds `k` nodes; raise TypeError where it has other retrievers inside."""
    changed, kind = copy.copy(retriever), type(retriever).__name__
    counts = [name for name in _COUNTS if type(vars(retriever).get(name)) is int]
    held = (value.values() if isinstance(value, Mapping) else value for value in vars(retriever).values())
    listed = [list(value) if isinstance(value, (list, tuple, ValuesView)) else [value] for value in held]
    inside = any(isinstance(inner, (BaseRetriever, RetrieverTool)) for inners in listed for inner in inners)
    if inside or not (counts or kind in _GIVE_ALL):
        raise TypeError(
            f"how many nodes {kind} finds cannot be set: put a DiverseRetriever around each retriever inside of it, or "
            "pass fetch=, a function from a QueryBundle and a number to that many nodes, best first"
        )
    scores = getattr(getattr(retriever, "bm25", None), "scores", None)  # BM25 refuses to return more than it has
    there = scores.get("num_docs", k) if isinstance(scores, Mapping) else k
    for name in counts:
        setattr(changed, name, max(min(k, int(there)), 1))
    return changed
