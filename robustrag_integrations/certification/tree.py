"""The tree of partial responses: what follows a prefix, for all cases at once (paper, Algorithm 4, lines 8-22)."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from robustrag_integrations.aggregation.decoding import (
    ONE,
    Scores,
    TokenChoice,
    choose_token,
    fixed_point,
    most_probable,
)
from robustrag_integrations.certification.findings import Findings, Ledger, Question
from robustrag_integrations.certification.requests import Branch, CertificationReply, CertificationRequest, Grow
from robustrag_integrations.certification.steps import TokenSpan, possible_tokens
from robustrag_integrations.defenses.decoding import DecodingSettings, extend
from robustrag_integrations.metrics import Metric
from robustrag_integrations.models.base import Distributions, TokenCodec
from robustrag_integrations.models.token_text import TokenText
from robustrag_integrations.prompts import ABSTENTION

if TYPE_CHECKING:
    from numpy.typing import NDArray

SHOWN = 200  # nodes of the tree that are kept for pictures
_CAUSES = {True: "a path of the decoding tree", False: "the beginning of a path of the decoding tree"}
LEFT_OUT = "what follows a partial response that has the highest score was left out"


@dataclass(frozen=True)
class Seat:
    """Where a case's answering groups sit: (session, row) each."""

    size: int  # index of the corruption size
    number: int  # of the case within its size
    rows: tuple[tuple[int, int], ...]
    corrupted: int


@dataclass
class Node:
    """A partial response, and the cases in which it is possible."""

    text: TokenText
    seats: list[Seat]
    only_child: bool = False

    @property
    def prefix(self) -> tuple[int, ...]:
        """The tokens so far."""
        return tuple(self.text.tokens)


@dataclass
class Walk:
    """What the levels of the tree share."""

    question: Question
    settings: DecodingSettings
    codec: TokenCodec
    sizes: list[Findings]
    ledger: Ledger
    metric: Metric | None
    tree: dict[int, list[dict[str, Any]]] = field(default_factory=dict)

    def alive(self, seat: Seat) -> bool:
        """Whether this case still matters."""
        return not self.sizes[seat.size].done

    def span(self, seat: Seat, replies: dict[int, Rows], prefix: tuple[int, ...]) -> TokenSpan:
        """What can follow a prefix in one case."""
        scores = np.stack([replies[s].scores[row] for s, row in seat.rows])
        fallbacks = replies[seat.rows[0][0]].fallbacks
        choice = choose_token(scores, fallbacks[0], self.settings.eta)
        slack = self.settings.slack if seat.corrupted else 0
        span = possible_tokens(choice, fallbacks, seat.corrupted, self.settings.eta, slack)
        self._keep(seat, prefix, choice, span)
        return span

    def _keep(self, seat: Seat, prefix: tuple[int, ...], choice: TokenChoice, span: TokenSpan) -> None:
        nodes = self.tree.setdefault(seat.size, [])
        if seat.number == 0 and len(nodes) < SHOWN:
            words = [self.codec.decode([*prefix, t])[len(self.codec.decode(list(prefix))) :] for t in span.tokens]
            nodes.append(
                {
                    "prefix": list(prefix),
                    "gap": round(choice.gap / ONE, 6),
                    "kind": span.kind,
                    "tokens": list(span.tokens),
                    "words": ["<end>" if self.codec.is_end(t) else w for t, w in zip(span.tokens, words, strict=True)],
                }
            )


@dataclass(frozen=True)
class Rows:
    """A session's rows after a prefix: fixed-point scores, and the tokens that may be the no-retrieval token."""

    scores: Scores
    fallbacks: tuple[int, ...]


def rows_of(distributions: Distributions, slack: int) -> Rows:
    """A session's reply in fixed point."""
    return Rows(fixed_point(distributions.groups), _fallbacks(distributions.no_retrieval, slack))


def _fallbacks(no_retrieval: NDArray[np.floating], slack: int) -> tuple[int, ...]:
    """The no-retrieval token, and those that float noise (a 64th of the slack for all sums) could put in its place."""
    best = most_probable(no_retrieval)
    if not slack:
        return (best,)
    row = fixed_point(no_retrieval[None])[0]
    near = np.flatnonzero(row >= int(row[best]) - slack // 64)
    return tuple(dict.fromkeys((best, *map(int, near))))


def sessions_of(node: Node) -> list[int]:
    """The sessions that hold a row of one of the node's cases."""
    return sorted({session for seat in node.seats for session, _ in seat.rows})


def grow(
    walk: Walk, part: Sequence[Node]
) -> Generator[CertificationRequest, CertificationReply, list[dict[int, Rows]]]:
    """Score these nodes' prefixes in the sessions that they need."""
    branches = tuple(Branch(s, node.prefix, node.only_child) for node in part for s in sessions_of(node))
    told: Sequence[Distributions] = yield Grow(branches)
    walk.ledger.spent += len(branches)
    replies = iter(told)
    return [{s: rows_of(next(replies), walk.settings.slack) for s in sessions_of(node)} for node in part]


@dataclass(frozen=True)
class Leaf:
    """A finished response and the cases in which it is possible."""

    text: str
    seats: tuple[Seat, ...]
    whole: bool = True  # False: what follows scores no less and was left out


def expand(walk: Walk, node: Node, rows: dict[int, Rows]) -> tuple[list[Node], list[Leaf]]:
    """The partial responses that can follow a node, and the ones that are finished."""
    follows: dict[int, list[Seat]] = {}
    for seat in node.seats:
        if not walk.alive(seat):
            continue
        span = walk.span(seat, rows, node.prefix)
        if span.kind == "open":
            walk.sizes[seat.size].open_ended(
                f"after {node.text.codec.decode(node.text.tokens)!r:.200} the {seat.corrupted} corrupted groups "
                "can decide the next token"
            )
        for token in span.tokens:
            follows.setdefault(token, []).append(seat)
    children, leaves = [], []
    for token, seats in follows.items():
        text = node.text.fork()
        _, complete = extend(text, token, walk.settings.max_new_tokens)
        if complete:
            leaves.append(Leaf(finished(text), tuple(seats)))
        elif _cannot_fall(walk, text):
            leaves.append(Leaf(text.shown, tuple(seats), whole=False))
        else:
            children.append(Node(text, seats))
    if len(children) == 1 and node.text.tokens:  # the root stays, for sampling
        children[0].only_child = True
    return children, leaves


def finished(text: TokenText) -> str:
    """The answer's text once no more tokens come."""
    text.finish()
    return text.shown or ABSTENTION


def _cannot_fall(walk: Walk, text: TokenText) -> bool:
    """Whether whatever follows scores the metric's highest: all responses from here on count as one."""
    metric = walk.metric
    highest = getattr(metric, "highest", None)
    if metric is None or highest is None or not getattr(metric, "monotone", False) or not text.shown:
        return False
    return bool(metric(text.shown, walk.question.references) >= highest)


def score_leaves(walk: Walk, leaves: Sequence[Leaf]) -> Generator[CertificationRequest, CertificationReply, None]:
    """Score finished responses; one that scores 0 settles its corruption size."""
    scores = yield from walk.ledger.scored(leaf.text for leaf in leaves)
    for leaf, score in zip(leaves, scores, strict=True):
        for seat in leaf.seats:
            found = walk.sizes[seat.size]
            if not leaf.whole:
                found.stopped = found.stopped or LEFT_OUT
            found.add(leaf.text, score, _CAUSES[leaf.whole], seat.number)
