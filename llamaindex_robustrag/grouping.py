"""Retrieved nodes as isolation groups: one source document, one group (paper, section III-A, IsoGroup)."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Literal

from llama_index.core.schema import BaseNode, MetadataMode, NodeWithScore

from robustrag_integrations.passages import GroupBy, Passage, PassageGroup, isolate

GroupNodesBy = Literal["source", "node"] | Callable[[NodeWithScore], Hashable]

_NODE = "node"
_NO_SOURCES = (
    "no node has a source document (node.source_node), so each node is a group: a document that was cut into several "
    "nodes has several votes; set the SOURCE relationship, or pass group_by="
)


@dataclass(frozen=True)
class GroupedNodes:
    """Groups of nodes, and what a reader of the answer should know about how they came about.

    Attributes:
        groups: one per source document, key or node.
        by: what the passages of a group have in common, in the core's terms; None where each is a group by itself.
        warnings: what the core cannot know.
    """

    groups: tuple[PassageGroup, ...]
    by: GroupBy | None = None
    warnings: tuple[str, ...] = ()


def check_group_by(group_by: object) -> None:
    """Raise ValueError unless nodes can be grouped by this."""
    if group_by not in ("source", "node") and not callable(group_by):
        raise ValueError(f"group_by={group_by!r}: use 'source', 'node' or a function from a NodeWithScore to a key")


def group_nodes(nodes: Sequence[NodeWithScore], group_by: GroupNodesBy) -> GroupedNodes:
    """Cut ranked nodes into isolation groups.

    Args:
        nodes: what was retrieved, best first. Their text is what the model reads: `get_content(MetadataMode.LLM)`.
        group_by: `"source"`: nodes of one source document (`node.source_node.node_id`) share a group, so that a
            document has one vote however many of its nodes were retrieved. `"node"`: every node is a group. A
            function: nodes of one key share a group; a node for which it raises or gives no usable key has none.

    Nodes without a source or key share one group, since leaving it out must not gain votes. If no node at all has a
    source, there is nothing to gain: each of them is a group of its own, and the answer carries a warning.
    """
    passages = [_passage(n) for n in nodes]
    if callable(group_by):
        return _grouped(passages, _by_node(group_by))
    if group_by == "node":
        return _grouped(passages, _by_node(_id_of))
    if passages and all(passage.source is None for passage in passages):
        return _grouped(passages, _by_node(_id_of), _NO_SOURCES)
    return _grouped(passages, "source")


def node_places(nodes: Sequence[NodeWithScore], group_by: GroupNodesBy) -> tuple[int, ...]:
    """Per node the number of its group."""
    place = {id(p.metadata[_NODE]): g.index for g in group_nodes(nodes, group_by).groups for p in g.passages}
    return tuple(place[id(node)] for node in nodes)


def group_texts(texts: Sequence[str]) -> GroupedNodes:
    """Bare texts, of which nothing is known but their order: each is a group."""
    return GroupedNodes(isolate(texts))


def source_of(node: BaseNode) -> str | None:
    """The id of the document that a node was cut from; None when the node does not say."""
    try:
        source = node.source_node
    except ValueError:  # a list where one document belongs
        return None
    return source.node_id if source is not None else None


def _passage(found: NodeWithScore) -> Passage:
    node = found.node
    text = node.get_content(MetadataMode.LLM) or ""
    return Passage(text, id=node.node_id, source=source_of(node), metadata={_NODE: found})


def _grouped(passages: Sequence[Passage], by: GroupBy, *warnings: str) -> GroupedNodes:
    return GroupedNodes(isolate(passages, by=by), by, warnings)


def _by_node(key: Callable[[NodeWithScore], Hashable]) -> GroupBy:
    return lambda passage: key(passage.metadata[_NODE])


def _id_of(found: NodeWithScore) -> str:
    return found.node.node_id
