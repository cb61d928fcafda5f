"""Retrieved nodes as isolation groups: one source document, one group (paper, section III-A, IsoGroup)."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Literal

from llama_index.core.schema import BaseNode, MetadataMode, NodeWithScore

from robustrag_integrations.passages import Passage, PassageGroup, isolate

GroupNodesBy = Literal["source", "node"] | Callable[[NodeWithScore], Hashable]

_KEY = "group"


@dataclass(frozen=True)
class GroupedNodes:
    """Groups of nodes, and what a reader of the answer should know about how they came about."""

    groups: tuple[PassageGroup, ...]
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
            function: nodes of one key share a group; a node for which it raises or gives None has no key.

    Nodes without a source or key share one group, since leaving it out must not gain votes. If no node at all has a
    source, there is nothing to gain: each of them is a group of its own, and the answer carries a warning.
    """
    keys, warnings = _keys(nodes, group_by)
    passages = [
        Passage(n.node.get_content(MetadataMode.LLM) or "", id=n.node.node_id, source=source_of(n.node), metadata=key)
        for n, key in zip(nodes, keys, strict=True)
    ]
    return GroupedNodes(isolate(passages, by=lambda passage: passage.metadata[_KEY]), tuple(warnings))


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


def _keys(nodes: Sequence[NodeWithScore], group_by: GroupNodesBy) -> tuple[list[dict[str, Hashable]], list[str]]:
    found: list[Hashable]
    if group_by == "node":
        found = [n.node.node_id for n in nodes]
    elif group_by == "source":
        found = [source_of(n.node) for n in nodes]
        if nodes and all(key is None for key in found):
            return [{_KEY: n.node.node_id} for n in nodes], [
                "no node has a source document (node.source_node), so each node is a group: a document that was cut "
                "into several nodes has several votes; set the SOURCE relationship, or pass group_by="
            ]
    else:
        found = [_key_of(group_by, n) for n in nodes]
    bare = sum(key is None for key in found)
    what = "source document" if group_by == "source" else "group_by key"
    warning = f"{bare} of {len(nodes)} nodes have no {what}; they share one group"
    return [{_KEY: key} for key in found], [warning] if bare else []


def _key_of(group_by: Callable[[NodeWithScore], Hashable], node: NodeWithScore) -> Hashable:
    """The key of one node. Whoever writes a document may leave out what the function looks for."""
    try:
        key = group_by(node)
        hash(key)
    except Exception:
        return None
    return key
