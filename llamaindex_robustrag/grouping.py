"""Retrieved nodes as isolation groups: one origin, one group (paper, section III-A, IsoGroup)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from llama_index.core.schema import DEFAULT_TEXT_NODE_TMPL, BaseNode, MetadataMode, NodeWithScore

from robustrag_integrations.defenses.base import shelf_of
from robustrag_integrations.grouping.passages import (
    ORIGIN,
    PASSAGE,
    SITE,
    GroupBy,
    Passage,
    Source,
    grouping_of,
    is_blank,
    isolate,
)


def group_nodes(nodes: Sequence[NodeWithScore], group_by: GroupBy) -> tuple[Source, ...]:
    """Put ranked nodes, of which a model reads `text_of`, into isolation sources.

    `group_by` is as for the core's `isolate`. `"origin"`: nodes of one file or page share a source, as their metadata
    says (`file_path`, which readers write, then `source`, `url`, ...), else those of one source document
    (`node.source_node`), however many documents a file was loaded as; where some name a file or page, those that name
    none share a source. A function takes a `Passage`: `metadata` is the node's, `id` its id, `document_id` that of its
    source document.
    """
    nodes = checked_nodes(nodes, "nodes")
    passages = [_passage(n) for n in nodes]
    if group_by == PASSAGE:  # a node that was retrieved twice is one
        return isolate(passages, by=lambda passage: passage.id)
    by = grouping_of(1, group_by)
    sources = isolate(passages, by=by)
    if by in (ORIGIN, SITE) and all(g.keyless for g in sources) and len(sources) == len(passages):
        once = isolate(passages, by=lambda passage: passage.id)
        sources = tuple(replace(source, keyless=("None",) * len(source.passages)) for source in once)
    return sources


def shelf_of_nodes(nodes: Sequence[NodeWithScore]) -> tuple[Source, ...]:
    """Put trusted nodes, of which a model reads what stock synthesizers show, into one source; none for no node."""
    passages = (_passage(node, trusted=True) for node in nodes)
    return shelf_of([replace(p, text=p.text.strip()) for p in passages])


def checked_nodes(nodes: Any, name: str) -> list[NodeWithScore]:
    """Return nodes as a new list; TypeError if it is something else."""
    found = list(nodes) if hasattr(nodes, "__iter__") else [nodes]
    if wrong := [type(n).__name__ for n in found if not isinstance(n, NodeWithScore)]:
        raise TypeError(f"{name} must be what retriever.retrieve(query) gave, a list of NodeWithScore, got {wrong[0]}")
    return found


def node_places(nodes: Sequence[NodeWithScore], group_by: GroupBy) -> tuple[int, ...]:
    """Return the source number of each node."""
    place = {rank: source.index for source in group_nodes(nodes, group_by) for rank in source.ranks}
    return tuple(place[rank] for rank in range(len(nodes)))


def source_of(node: BaseNode) -> str | None:
    """Return the id of the document that a node was cut from; None when the node does not say."""
    try:
        source = node.source_node
    except ValueError:  # a list where one document belongs
        return None
    return source.node_id if source is not None else None


def text_of(node: BaseNode, *, trusted: bool = False) -> str:
    """Return what a model reads of a node: its text, and no metadata, which may be repeated as an answer.

    A `text_template` of the user's own puts its `{metadata_str}` where it stands; LlamaIndex's own writes all entries
    (`file_path: ...`) before every text, and before those of trusted nodes they stay.
    """
    content = node.get_content(MetadataMode.NONE) or ""
    of_stock = getattr(node, "text_template", DEFAULT_TEXT_NODE_TMPL) == DEFAULT_TEXT_NODE_TMPL
    return content if is_blank(content) or (of_stock and not trusted) else node.get_content(MetadataMode.LLM)


def _passage(found: NodeWithScore, *, trusted: bool = False) -> Passage:
    node = found.node
    return Passage(
        text_of(node, trusted=trusted),
        id=node.node_id,
        origin=node.metadata.get("source"),
        metadata=node.metadata,
        document_id=source_of(node),
        content=node.get_content(MetadataMode.NONE) or "",
        origin_entry="file_path",
    )
