"""The tree of partial responses: continuations of a prefix, for all cases at once (paper, Algorithm 4, lines 8-22)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from robustrag_integrations.certification.findings import Asking, Findings, Ledger, Question
from robustrag_integrations.defenses.decoding.settings import DecodingSettings
from robustrag_integrations.defenses.decoding.step import extend
from robustrag_integrations.defenses.decoding.token_choice import (
    ONE,
    FixedPoint,
    TokenChoice,
    TokenSpan,
    certain_tokens,
    choose_token,
    fixed_point,
    most_probable,
)
from robustrag_integrations.errors import ModelError
from robustrag_integrations.metrics import Metric
from robustrag_integrations.models.base import Distributions, TokenCodec
from robustrag_integrations.models.detokenizer import IncrementalDetokenizer, spelt
from robustrag_integrations.prompts import ABSTENTION, Prompt

SHOWN = 200  # nodes of the tree that are kept for pictures
_CAUSES = {True: "a path of the decoding tree", False: "the beginning of a path of the decoding tree"}
LEFT_OUT = "what follows a partial response that has the highest score was left out"


@dataclass(frozen=True)
class OpenTrees:
    """A request to start a decoding session over each list of prompts; the reply is one `Opening` each, in order."""

    sessions: tuple[tuple[Prompt, ...], ...]
    no_retrieval: Prompt
    max_new_tokens: int


@dataclass(frozen=True)
class Branch:
    """A step down the tree of prefixes.

    Attributes:
        session: the place of a session of `OpenTrees`.
        prefix: all tokens of the answer so far, the new one last.
        only_child: True if nothing else will branch off the prefix before this token, so that its state can be used up.
    """

    session: int
    prefix: tuple[int, ...]
    only_child: bool


@dataclass(frozen=True)
class Grow:
    """A request to score these prefixes; the reply is one `Distributions` each, in order.

    States of prefixes shorter than the parents of these are not needed any more, the roots excepted.

    Attributes:
        branches: the prefixes.
        exact: True if only the numbers of inference will do: those given before had too much noise.
    """

    branches: tuple[Branch, ...]
    exact: bool = False


@dataclass(frozen=True)
class Seat:
    """The position of a case's answering groups: (session, row) each."""

    size: int  # index of the findings: a corruption size, or one with an eta
    number: int  # of the case within its size
    rows: tuple[tuple[int, int], ...]
    corrupted: int


@dataclass
class Node:
    """A partial response, and the cases in which it is possible."""

    text: IncrementalDetokenizer
    seats: list[Seat]
    only_child: bool = False

    @property
    def prefix(self) -> tuple[int, ...]:
        """The tokens so far."""
        return tuple(self.text.tokens)


@dataclass
class Walk:
    """The state that all levels of the tree share."""

    question: Question
    settings: DecodingSettings
    codec: TokenCodec
    sizes: list[Findings]  # one per corruption size
    ledger: Ledger
    metric: Metric | None
    tree: dict[int, dict[tuple[int, ...], dict[str, Any]]] = field(default_factory=dict)

    def alive(self, seat: Seat) -> bool:
        """True while this case can still change its certificate."""
        return not self.sizes[seat.size].done

    def span(
        self, seat: Seat, replies: dict[int, Rows], prefix: tuple[int, ...], *, asking_again: bool = False
    ) -> TokenSpan | None:
        """Return the tokens that can follow a prefix in one case.

        Where the noise of the numbers leaves it open: None if the model will be asked again, else anything (`open`).
        """
        scores = np.stack([replies[s].scores[row] for s, row in seat.rows])
        here = replies[seat.rows[0][0]]
        eta = self.settings.eta_units
        choice = choose_token(scores, here.fallbacks[0], eta)
        slack = self.settings.slack_units if seat.corrupted else 0
        error = 2 * sum(replies[s].noise for s, _ in seat.rows)
        span = certain_tokens(choice, here.fallbacks, seat.corrupted, eta, slack, error, sure=here.sure)
        if span is None and not asking_again:
            span = TokenSpan("open", ())
        if span is not None:
            self._keep(seat, prefix, choice, span)
        return span

    def _keep(self, seat: Seat, prefix: tuple[int, ...], choice: TokenChoice, span: TokenSpan) -> None:
        nodes = self.tree.setdefault(seat.size, {})
        if seat.number == 0 and len(nodes) < SHOWN and prefix not in nodes:
            nodes[prefix] = {
                "prefix": list(prefix),
                "gap": round(choice.gap / ONE, 6),
                "kind": span.kind,
                "tokens": list(span.tokens),
                "words": [spelt(self.codec, prefix, t) for t in span.tokens],
            }


@dataclass(frozen=True)
class Rows:
    """A session's rows after a prefix, in fixed point.

    Attributes:
        scores: [rows, V].
        fallbacks: the tokens that may be the no-retrieval token.
        noise: a bound on the distance of each score from that of inference.
        sure: True if inference has the same fallbacks.
    """

    scores: FixedPoint
    fallbacks: tuple[int, ...]
    noise: int = 0
    sure: bool = True


def rows_of(distributions: Distributions, slack: int) -> Rows:
    """Return a session's reply in fixed point.

    The fallbacks are the no-retrieval token, and those that float noise (a 64th of the slack for all sums) could put in
    its place.

    Raises:
        ModelError: a row could not be asked.
    """
    for group, failure in enumerate(distributions.failures):
        if failure is not None:
            raise ModelError(f"nothing can be certified while requests fail; row {group}: {failure}")
    noise = math.ceil(distributions.noise * ONE)
    best = most_probable(distributions.no_retrieval)
    if not slack and not noise:
        return Rows(fixed_point(distributions.groups), (best,))
    row = fixed_point(distributions.no_retrieval[None])[0]
    behind = int(row[best]) - row
    near = tuple(dict.fromkeys((best, *map(int, np.flatnonzero(behind <= slack // 64)))))
    sure = not noise or np.count_nonzero(behind <= slack // 64 + 2 * noise) == 1
    return Rows(fixed_point(distributions.groups), near if slack else (best,), noise, bool(sure))


def sessions_of(node: Node) -> list[int]:
    """Return the sessions that hold a row of one of the node's cases."""
    return sorted({session for seat in node.seats for session, _ in seat.rows})


def grow(walk: Walk, part: Sequence[Node]) -> Asking[list[list[tuple[Seat, TokenSpan]]]]:
    """Return the tokens that can follow these nodes in each of their living cases.

    Where noise in the model's numbers could make a difference, it is asked once more, for the numbers of inference.
    """
    scored = yield from _scores(walk, part, exact=False)
    walk.ledger.spent += sum(len(sessions_of(node)) for node in part)
    spans = [judged(walk, node, rows, asking_again=True) for node, rows in zip(part, scored, strict=True)]
    unclear = [i for i, found in enumerate(spans) if found is None]
    if unclear:
        again = yield from _scores(walk, [part[i] for i in unclear], exact=True)
        for i, rows in zip(unclear, again, strict=True):
            spans[i] = judged(walk, part[i], rows)
    return [found for found in spans if found is not None]


def _scores(walk: Walk, part: Sequence[Node], *, exact: bool) -> Asking[list[dict[int, Rows]]]:
    """Score these nodes' prefixes in the sessions that they need."""
    branches = tuple(Branch(s, node.prefix, node.only_child) for node in part for s in sessions_of(node))
    distributions: Sequence[Distributions] = yield Grow(branches, exact)
    replies = iter(distributions)
    return [{s: rows_of(next(replies), walk.settings.slack_units) for s in sessions_of(node)} for node in part]


def judged(
    walk: Walk, node: Node, rows: dict[int, Rows], *, asking_again: bool = False
) -> list[tuple[Seat, TokenSpan]] | None:
    """Return what can follow a node in each living case; None where noise leaves one open, to be asked again."""
    alive = [seat for seat in node.seats if walk.alive(seat)]
    spans = [(seat, walk.span(seat, rows, node.prefix, asking_again=asking_again)) for seat in alive]
    known = [(seat, span) for seat, span in spans if span is not None]
    return known if len(known) == len(spans) else None


@dataclass(frozen=True)
class Leaf:
    """A finished response and the cases in which it is possible."""

    text: str
    seats: tuple[Seat, ...]
    whole: bool = True  # False: what follows scores no less and was left out


def expand(walk: Walk, node: Node, spans: Sequence[tuple[Seat, TokenSpan]]) -> tuple[list[Node], list[Leaf]]:
    """Return the partial responses that can follow a node, and the finished ones."""
    follows: dict[int, list[Seat]] = {}
    for seat, span in spans:
        if not walk.alive(seat):
            continue
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


def finished(text: IncrementalDetokenizer) -> str:
    """Return the answer's text once no more tokens come."""
    text.finish()
    return text.shown or ABSTENTION


def _cannot_fall(walk: Walk, text: IncrementalDetokenizer) -> bool:
    """True if any continuation scores the metric's highest: all responses from here on count as one."""
    metric = walk.metric
    highest = getattr(metric, "highest", None)
    if metric is None or highest is None or not getattr(metric, "monotone", False) or not text.shown:
        return False
    return bool(metric(text.shown, walk.question.references) >= highest)


def score_leaves(walk: Walk, leaves: Sequence[Leaf]) -> Asking[None]:
    """Score finished responses; one that scores 0 settles its corruption size."""
    scores = yield from walk.ledger.scored(leaf.text for leaf in leaves)
    for leaf, score in zip(leaves, scores, strict=True):
        for seat in leaf.seats:
            found = walk.sizes[seat.size]
            if not leaf.whole:
                found.stopped = found.stopped or LEFT_OUT
            found.add(leaf.text, score, _CAUSES[leaf.whole], seat.number)
