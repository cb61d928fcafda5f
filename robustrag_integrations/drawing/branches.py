"""The layout of a decoding tree: partial responses from left to right, one leaf to a line.

Works on the `tree` of a certificate's evidence, which may come from an untrusted file: what hangs together with
the root is laid out, and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Prefix = tuple[int, ...]

MEANINGS = {
    "top": "one token, whatever the attacker does",
    "fallback": "the no-retrieval token, whatever the attacker does",
    "either": "the attacker chooses between these",
    "open": "the attacker can decide the token",
}
END = "the end, or followed no further"
_MOST_NODES, _MOST_CHILDREN = 200, 20


@dataclass(frozen=True)
class Branches:
    """A decoding tree with its layout.

    Attributes:
        nodes: the analysed partial responses by their tokens; each has a `kind` of `MEANINGS` and a `gap`.
        children: what can follow each: the longer prefix, and how its last token reads.
        heights: the line that a prefix is drawn on, for nodes and for what follows them; leaves count from 0, a parent
            is drawn in the middle of its children.
    """

    nodes: Mapping[Prefix, Mapping[str, Any]]
    children: Mapping[Prefix, Sequence[tuple[Prefix, str]]]
    heights: Mapping[Prefix, float]

    @property
    def depth(self) -> int:
        """Tokens of the longest prefix."""
        return max(map(len, self.heights))

    def kind(self, prefix: Prefix) -> str | None:
        """The node's kind; None for an end. A choice between one token and itself is none."""
        node = self.nodes.get(prefix)
        if node is None:
            return None
        alone = node["kind"] == "either" and len(self.children[prefix]) == 1
        return "top" if alone else str(node["kind"])


def branches_of(tree: Sequence[Mapping[str, Any]], most_tokens: int | None = None) -> Branches:
    """Lay out a tree.

    Args:
        tree: `evidence["tree"]`; at most 200 nodes of it are looked at.
        most_tokens: what lies deeper is left out.
    """
    known = {tuple(node["prefix"]): node for node in tree[:_MOST_NODES]}
    if most_tokens is not None:
        known = {prefix: node for prefix, node in known.items() if len(prefix) < most_tokens}
    children: dict[Prefix, list[tuple[Prefix, str]]] = {}
    heights: dict[Prefix, float] = {}
    leaves = 0
    for prefix in _children_first(known):
        node = known.get(prefix)
        if node is not None:
            children[prefix] = _following(prefix, node)
        if below := [heights[child] for child, _ in children.get(prefix, ())]:
            heights[prefix] = sum(below) / len(below)
        else:
            heights[prefix] = leaves
            leaves += 1
    return Branches({p: known[p] for p in children}, children, heights)


def _following(prefix: Prefix, node: Mapping[str, Any]) -> list[tuple[Prefix, str]]:
    pairs = dict(zip(node["tokens"][:_MOST_CHILDREN], node["words"], strict=False))
    return [((*prefix, token), word) for token, word in pairs.items()]


def _children_first(known: Mapping[Prefix, Mapping[str, Any]]) -> Iterator[Prefix]:
    """The prefixes from the root on, each after what follows it. Not recursive, since trees are deep."""
    stack: list[tuple[Prefix, bool]] = [((), False)]
    while stack:
        prefix, ready = stack.pop()
        node = known.get(prefix)
        if ready or node is None or not node["tokens"]:
            yield prefix
        else:
            stack.append((prefix, True))
            stack += [(child, False) for child, _ in reversed(_following(prefix, node))]
