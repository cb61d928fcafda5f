"""Draws a certificate's decoding tree: every partial response that the attacker can reach, and its continuations.

Works on the `tree` of a certificate's evidence, which may come from an untrusted file: what hangs together with the
root is laid out, from left to right and one leaf to a line, and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from robustrag_integrations.drawing.elements import Element, h
from robustrag_integrations.drawing.text import one_line

Prefix = tuple[int, ...]

MEANINGS = {
    "top": "one token, whatever the attacker does",
    "fallback": "the no-retrieval token, whatever the attacker does",
    "either": "the attacker chooses between these",
    "open": "the attacker can decide the token",
}
END = "the end, or followed no further"
_MOST_NODES, _MOST_CHILDREN = 200, 20
_ACROSS, _DOWN, _MARGIN = 76, 30, 20
_DEEPEST = 60  # tokens of a picture


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
        """The number of tokens of the longest prefix."""
        return max(map(len, self.heights))

    def kind(self, prefix: Prefix) -> str | None:
        """Return the node's kind; None for an end. A single possible token is no choice."""
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
    """Yield the prefixes, children before parents. Not recursive, as trees are deep."""
    stack: list[tuple[Prefix, bool]] = [((), False)]
    while stack:
        prefix, ready = stack.pop()
        node = known.get(prefix)
        if ready or node is None or not node["tokens"]:
            yield prefix
        else:
            stack.append((prefix, True))
            stack += [(child, False) for child, _ in reversed(_following(prefix, node))]


def tree_drawing(evidence: Mapping[str, Any]) -> Element | None:
    """Draw the tree from left to right with a legend; None where there is none.

    Args:
        evidence: `tree`, the nodes that `Certification.evidence` holds for decoding aggregation.
    """
    nodes = evidence.get("tree", ())
    if not nodes:
        return None
    tree = branches_of(nodes, _DEEPEST)
    if not tree.nodes:
        return None
    width = 2 * _MARGIN + _ACROSS * max(tree.depth, 1)
    height = 2 * _MARGIN + _DOWN * max(tree.heights.values())
    said = _in_words(tree, max(len(node["prefix"]) for node in nodes))
    marks = [*_edges(tree), *_dots(tree)]
    size = {"viewBox": f"0 0 {width} {height:g}", "width": str(width), "height": f"{height:g}"}
    drawing = h("svg", *marks, role="img", aria_label=said, cls="tree-drawing", **size)
    return h("div", h("p", said, cls="caption"), h("div", drawing, cls="scroll"), _legend(tree), cls="tree")


def token_in_words(word: str) -> str:
    """Return a token for print: without its leading space, and as a sign if nothing else is left."""
    return one_line(word, 24) or ("⏎" if "\n" in word else "␣" if word else "·")


def _edges(tree: Branches) -> Iterator[Element]:
    """Draw a line to every token that can follow, with the token on it."""
    for prefix, following in tree.children.items():
        x, y = _x(len(prefix)), _y(tree.heights[prefix])
        for child, word in following:
            below = _y(tree.heights[child])
            end = _x(len(child))
            bend = x + _ACROSS / 4
            yield h("polyline", points=f"{x:g},{y:g} {bend:g},{below:g} {end:g},{below:g}", cls="branch")
            text = token_in_words(word)
            shown = text if len(text) <= 9 else text[:8] + "…"
            middle = (bend + end) / 2
            yield h("text", h("title", text), shown, x=middle, y=below - 5, text_anchor="middle", cls="twig")


def _dots(tree: Branches) -> Iterator[Element]:
    for prefix, height in tree.heights.items():
        kind, title = tree.kind(prefix), END
        if kind is not None:
            title = f"lead {tree.nodes[prefix]['gap']:.3g}: {MEANINGS.get(kind) or one_line(kind, 40)}"
        yield h("circle", h("title", title), cx=_x(len(prefix)), cy=_y(height), r=4.5, cls=f"node {_class(kind)}")


def _legend(tree: Branches) -> Element:
    found = set(map(tree.kind, tree.nodes))
    kinds = [(kind, said) for kind, said in MEANINGS.items() if kind in found] + [("end", END)]
    return h("ul", *(h("li", _key(kind), " ", said) for kind, said in kinds), cls="keys")


def _key(kind: str) -> Element:
    dot = h("circle", cx=6, cy=6, r=4.5, cls=f"node {_class(kind)}")
    return h("svg", dot, viewBox="0 0 12 12", width=12, height=12, aria_hidden="true")


def _class(kind: str | None) -> str:
    """Return the CSS class of a kind; an unknown kind in a file is drawn like an end."""
    return kind if kind in MEANINGS else "end"


def _in_words(tree: Branches, deepest: int) -> str:
    kinds = list(map(tree.kind, tree.nodes))
    said = f"Decoding tree of the first case: {len(kinds)} partial response{'s' * (len(kinds) != 1)}"
    if chosen := sum(kind == "either" for kind in kinds):
        said += f", at {chosen} of which the attacker has a choice"
    if lost := kinds.count("open"):
        said += f", at {lost} the attacker can decide"
    return said + (f"; the first {_DEEPEST} tokens are shown" if deepest >= _DEEPEST else "")


def _x(tokens: int) -> float:
    return _MARGIN + _ACROSS * tokens


def _y(height: float) -> float:
    return _MARGIN + _DOWN * height
