"""Estimates of tau from sampled responses when the tree is too large (paper, section IV-C, "Implementation details").

The result is an `Estimate`, never a certificate.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from robustrag_integrations.certification.findings import Asking
from robustrag_integrations.certification.result import Estimate
from robustrag_integrations.defenses.decoding.attacked_step import TokenSpan
from robustrag_integrations.defenses.decoding.requests import Branch, Grow
from robustrag_integrations.defenses.decoding.step import extend
from robustrag_integrations.defenses.decoding.tree import Rows, Seat, Walk, finished, rows_of
from robustrag_integrations.models.detokenizer import IncrementalDetokenizer

_Known = dict[tuple[Seat, tuple[int, ...]], TokenSpan]


def sample_leaves(walk: Walk, seats: Sequence[Seat], root: dict[int, Rows]) -> Asking[None]:
    """Draw paths of the tree for every corruption size that a limit left undecided.

    Each draw takes one case and, at every step, one possible token, evenly. What a prefix allows is computed once.
    """
    known: _Known = {}
    for index, found in enumerate(walk.sizes):
        mine = [seat for seat in seats if seat.size == index]
        if found.certified or not mine:
            continue
        random = Random(f"{walk.question.seed}/{found.size}")
        drawn: list[str] = []
        while len(drawn) < walk.question.sample and not found.unbounded:
            text = yield from _draw(walk, random.choice(mine), root, random, known)
            if text is None:
                found.refute("a sampled path leads to a step at which the corrupted groups can decide the next token")
            else:
                drawn.append(text)
        scores = yield from walk.ledger.scored(drawn)
        if found.unbounded:
            continue
        for text, score in zip(drawn, scores, strict=True):
            found.add(text, score, "a sampled path of the decoding tree", 0)
        found.estimate = Estimate(
            min(r.score for r in found.responses.values()), walk.question.sample, walk.question.seed
        )


def _draw(walk: Walk, seat: Seat, root: dict[int, Rows], random: Random, known: _Known) -> Asking[str | None]:
    """Draw one finished response; None where the attacker can cause anything."""
    text = IncrementalDetokenizer(walk.codec, walk.settings.stop, before_marks=True)
    while True:
        prefix = tuple(text.tokens)
        if (seat, prefix) not in known:
            rows = root if not prefix else (yield from _rows_after(walk, seat, prefix))
            span = walk.span(seat, rows, prefix)
            assert span is not None  # noqa: S101 - the numbers of inference leave nothing open
            known[seat, prefix] = span
        span = known[seat, prefix]
        if span.kind == "open":
            return None
        _, complete = extend(text, random.choice(span.tokens), walk.settings.max_new_tokens)
        if complete:
            return finished(text)


def _rows_after(walk: Walk, seat: Seat, prefix: tuple[int, ...]) -> Asking[dict[int, Rows]]:
    sessions = sorted({session for session, _ in seat.rows})
    replies = yield Grow(tuple(Branch(s, prefix, only_child=False) for s in sessions), exact=True)
    walk.ledger.spent += len(sessions)
    return {s: rows_of(d, walk.settings.slack) for s, d in zip(sessions, replies, strict=True)}
