"""Retrieved nodes as isolation groups: one origin, one group (paper, section III-A, IsoGroup)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from llama_index.core.schema import BaseNode, MetadataMode, NodeWithScore

from robustrag_integrations.answers.answer import as_answer
from robustrag_integrations.grouping.passages import (
    ORIGIN,
    PASSAGE,
    SITE,
    GroupBy,
    Passage,
    PassageGroup,
    grouping_of,
    is_blank,
    isolate,
)


def group_nodes(nodes: Sequence[NodeWithScore], group_by: GroupBy) -> tuple[PassageGroup, ...]:
    """Put ranked nodes, whose text is what the model reads (`MetadataMode.LLM`), into isolation groups.

    `group_by` is as for the core's `isolate`. `"origin"`: nodes of one file or page share a group, as their metadata
    says (`file_path`, which readers write, then `source`, `url`, ...), else those of one source document
    (`node.source_node`), however many documents a file was loaded as; where some name a file or page, those that name
    none share a group. A function takes a `Passage`: `metadata` is the node's, `id` its id, `document_id` that of its
    source document.
    """
    if wrong := [type(n).__name__ for n in nodes if not isinstance(n, NodeWithScore)]:
        raise TypeError(f"nodes must be what retriever.retrieve(query) gave, a list of NodeWithScore, got {wrong[0]}")
    passages = [_passage(n) for n in nodes]
    if group_by == PASSAGE:  # a node that was retrieved twice is one
        return isolate(passages, by=lambda passage: passage.id)
    by = grouping_of(1, group_by)
    groups = isolate(passages, by=by)
    if by in (ORIGIN, SITE) and all(g.keyless for g in groups) and len(groups) == len(passages):
        once = isolate(passages, by=lambda passage: passage.id)
        groups = tuple(replace(group, keyless=("None",) * len(group.passages)) for group in once)
    return groups


def node_places(nodes: Sequence[NodeWithScore], group_by: GroupBy) -> tuple[int, ...]:
    """Return the group number of each node."""
    place = {rank: group.index for group in group_nodes(nodes, group_by) for rank in group.ranks}
    return tuple(place[rank] for rank in range(len(nodes)))


def supporting_nodes(robustness: object, nodes: Sequence[NodeWithScore]) -> list[NodeWithScore]:
    """Return the nodes whose groups support the answer, in rank order; none for an abstention.

    Args:
        robustness: the `RobustAnswer`, or its `to_dict()`: `response.metadata["robustrag"]`.
        nodes: those that the answer was made from, in the same order: `response.source_nodes`.
    """
    return as_answer(robustness).supporting(nodes)


def source_of(node: BaseNode) -> str | None:
    """Return the id of the document that a node was cut from; None when the node does not say."""
    try:
        source = node.source_node
    except ValueError:  # a list where one document belongs
        return None
    return source.node_id if source is not None else None


def _passage(found: NodeWithScore) -> Passage:
    node = found.node
    content = node.get_content(MetadataMode.NONE) or ""
    text = "" if is_blank(content) else node.get_content(MetadataMode.LLM) or ""  # whatever its metadata says
    return Passage(
        text,
        id=node.node_id,
        source=node.metadata.get("source"),
        metadata=node.metadata,
        document_id=source_of(node),
        content=content,
        origin_entry="file_path",
    )
