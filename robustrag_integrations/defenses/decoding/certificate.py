"""Certificate of decoding aggregation (paper, section IV-C, Algorithm 4).

The tree of all partial responses is walked level by level, once for all corruption sizes, all values of eta and all
cases: a group's distribution after a prefix is the same whoever else is corrupted, so each prefix is scored once, and
each case sums the rows that are its own. A case leaves the walk at its first Case 4.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from random import Random
from typing import TYPE_CHECKING

from robustrag_integrations._util.words import count_of
from robustrag_integrations.certification.cases import BenignCase
from robustrag_integrations.certification.findings import (
    NOTHING_BENIGN,
    Asking,
    Findings,
    Ledger,
    Question,
    smaller_size_fails,
)
from robustrag_integrations.certification.isolated import NOTHING
from robustrag_integrations.certification.result import Estimate
from robustrag_integrations.defenses.decoding.settings import DecodingSettings
from robustrag_integrations.defenses.decoding.step import extend, largest_shift, rows_too_noisy, unsettled, who_answers
from robustrag_integrations.defenses.decoding.token_choice import TokenSpan
from robustrag_integrations.defenses.decoding.tree import (
    Branch,
    Grow,
    Node,
    OpenTrees,
    Rows,
    Seat,
    Walk,
    expand,
    finished,
    grow,
    judged,
    rows_of,
    score_leaves,
    sessions_of,
)
from robustrag_integrations.grouping.passages import PassageGroup
from robustrag_integrations.metrics import Metric
from robustrag_integrations.models.base import Opening, TokenCodec
from robustrag_integrations.models.detokenizer import IncrementalDetokenizer
from robustrag_integrations.plans.asking import truncation_warnings
from robustrag_integrations.prompts import ABSTENTION

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

NOBODY_LEFT = "no untouched group takes part in decoding: one that the attacker adds decides alone"
_AT_ONCE = 16  # prefixes scored per request, so that their distributions fit in memory
_Known = dict[tuple[Seat, tuple[int, ...]], TokenSpan]
_MOST_UNSURE = 4  # groups of which it may be open whether they answer; all their subsets are looked at


def decoding_certification_plan(
    question: Question,
    settings: DecodingSettings,
    codec: TokenCodec,
    *,
    metric: Metric | None = None,
) -> Asking[tuple[Findings, ...]]:
    """Certify all corruption sizes of a question in one walk over the tree of partial responses.

    `metric` is only looked at for what it says about itself: one that is `monotone` and has a `highest` score lets the
    walk leave out what follows a partial response that has it.

    Args:
        question: the question to certify.
        settings: the defence's.
        codec: the model's.
        metric: scores the responses.
    """
    sizes = [Findings(size, question.cases(size)) for size in question.sizes]
    walk = Walk(question, settings, codec, sizes, Ledger(question.max_model_calls), metric)
    for found in sizes:
        if not all(case.groups for case in found.cases):
            found.open_ended(NOTHING_BENIGN)
    _pass_on(walk)
    seated = yield from _open(walk)
    if seated:
        seats, rows = seated
        level = [Node(IncrementalDetokenizer(codec, settings.stop, before_marks=True), seats)]
        yield from _walk(walk, level, rows)
        if question.sample:
            yield from sample_leaves(walk, seats, rows)
    for index, found in enumerate(sizes):
        if found.model_calls is None or found.estimate:
            found.model_calls = walk.ledger.spent
        found.evidence = {"tree": list(walk.tree.get(index, {}).values()), **found.evidence}
    return tuple(sizes)


def _pass_on(walk: Walk) -> None:
    """Settle every larger attacker where a smaller one brings tau to 0."""
    failed: int | None = None
    for found in walk.sizes:
        if failed is not None and not found.done:
            found.settle(smaller_size_fails(failed))
        if found.done and found.model_calls is None:
            found.model_calls = walk.ledger.spent
        if failed is None and found.done and found.certified and found.tau == 0:
            failed = found.size


def _open(
    walk: Walk,
) -> Asking[tuple[list[Seat], dict[int, Rows]] | None]:
    """Read all untouched groups, in sessions of as many rows as inference has, and seat the cases in them."""
    batches, places = _sessions(walk.sizes)
    if not batches:
        return None
    if len(batches) > walk.ledger.left:
        for found in walk.sizes:
            found.give_up(f"{len(batches)} decoding sessions would have to be opened; raise max_model_calls")
        return None
    query, settings = walk.question.query, walk.settings
    prompts = tuple(settings.isolated_prompts(query, batch) for batch in batches)
    openings: Sequence[Opening] = yield OpenTrees(prompts, settings.no_retrieval_prompt(query), settings.max_new_tokens)
    walk.ledger.spent += len(batches)
    for batch, opening in zip(batches, openings, strict=True):
        if largest_shift(opening.distributions.moved, len(batch)) > settings.slack_units:
            for found in walk.sizes:
                found.give_up(rows_too_noisy(opening.distributions.moved, settings))
            return None
    turnouts = [_turnout(batch, o.abstention, settings) for batch, o in zip(batches, openings, strict=True)]
    seats = []
    for index, found in enumerate(walk.sizes):
        used = {place for c in found.cases for place in places.get((c.total, c.ranks), ())}
        found.warnings = tuple(truncation_warnings([openings[s].truncated[row] for s, row in used]))
        for number, case in enumerate(found.cases):
            if found.done:
                break
            groups = places[case.total, case.ranks]
            for rows in _may_answer(walk, found, groups, turnouts, exact=not case.corrupted):
                if rows:
                    seats.append(Seat(index, number, rows, case.corrupted))
                else:
                    yield from _nobody(walk, found, number, case)
    _pass_on(walk)
    return seats, {s: rows_of(o.distributions, walk.settings.slack_units) for s, o in enumerate(openings)}


@dataclass(frozen=True)
class _Turnout:
    """The rows of a session that answer, and those for which float noise could decide (p(abstain) next to gamma)."""

    answering: frozenset[int]
    unsure: frozenset[int]


def _turnout(groups: Sequence[PassageGroup], abstention: NDArray[np.floating], settings: DecodingSettings) -> _Turnout:
    answering = who_answers(groups, abstention, settings.gamma)
    return _Turnout(frozenset(answering), frozenset(unsettled(groups, abstention, settings)))


def _may_answer(
    walk: Walk,
    found: Findings,
    groups: Sequence[tuple[int, int]],
    turnouts: Sequence[_Turnout],
    *,
    exact: bool,
) -> Iterator[tuple[tuple[int, int], ...]]:
    """The sets of groups that may answer, as (session, row): one, or several where abstaining is a matter of noise.

    Args:
        walk: for its settings.
        found: certified no further if there are too many such sets.
        groups: a case's untouched groups.
        turnouts: per session.
        exact: True if noise plays no part.
    """
    unsure = [] if exact else [(s, row) for s, row in groups if row in turnouts[s].unsure]
    if len(unsure) > _MOST_UNSURE:
        found.open_ended(
            f"for {count_of(len(unsure), 'untouched group')} the probability of abstaining is within the slack of "
            f"gamma={walk.settings.gamma:g}: which of them answer is a matter of float noise"
        )
        return
    for count in range(len(unsure) + 1):
        for silent in combinations(unsure, count):
            yield tuple(
                (s, row)
                for s, row in groups
                if (s, row) not in silent and ((s, row) in unsure or row in turnouts[s].answering)
            )


def _nobody(walk: Walk, found: Findings, number: int, case: BenignCase) -> Asking[None]:
    """Certify an empty J: an abstention without an attacker, anything with one."""
    if case.corrupted:
        found.open_ended(NOBODY_LEFT)
        return
    [score] = yield from walk.ledger.scored([ABSTENTION])
    found.add(ABSTENTION, score, "no group answers", number)


_Places = dict[tuple[int, tuple[tuple[int, ...], ...]], list[tuple[int, int]]]


def _sessions(sizes: Sequence[Findings]) -> tuple[list[list[PassageGroup]], _Places]:
    """Distinct untouched groups packed into sessions of as many rows as inference has; where each case's groups are."""
    batches: list[list[PassageGroup]] = []
    seat_of: dict[tuple[int, tuple[int, ...]], tuple[int, int]] = {}
    open_batch: dict[int, int] = {}
    places: _Places = {}
    for case in (case for found in sizes if not found.done for case in found.cases):
        for ranks, group in zip(case.ranks, case.groups, strict=True):
            if (case.total, ranks) in seat_of:
                continue
            at = open_batch.get(case.total)
            if at is None or len(batches[at]) == case.total:
                at = open_batch[case.total] = len(batches)
                batches.append([])
            seat_of[case.total, ranks] = (at, len(batches[at]))
            batches[at].append(group)
        places[case.total, case.ranks] = [seat_of[case.total, ranks] for ranks in case.ranks]
    for total, at in [(t, a) for (t, _), (a, _) in seat_of.items()]:
        batches[at] += [NOTHING] * (total - len(batches[at]))
    return batches, places


def _walk(walk: Walk, level: list[Node], rows: dict[int, Rows]) -> Asking[None]:
    """Walk the tree breadth first; the root's rows are known."""
    following, leaves = expand(walk, level[0], judged(walk, level[0], rows) or ())
    yield from score_leaves(walk, leaves)
    level = following
    while level := _living(walk, level):
        needed = sum(len(sessions_of(node)) for node in level)
        if needed > walk.ledger.left:
            last = max((s.size for node in level for s in node.seats), key=lambda i: (walk.sizes[i].size, i))
            walk.sizes[last].give_up(
                f"{needed:,} more to score, and {count_of(walk.ledger.left, 'model call')} left; raise "
                "max_model_calls, or eta"
            )
            continue
        following, leaves = [], []
        for start in range(0, len(level), _AT_ONCE):
            part = level[start : start + _AT_ONCE]
            spans = yield from grow(walk, part)
            for node, known in zip(part, spans, strict=True):
                children, ended = expand(walk, node, known)
                following += children
                leaves += ended
        yield from score_leaves(walk, leaves)
        level = following


def _living(walk: Walk, level: Sequence[Node]) -> list[Node]:
    """The nodes that some undecided case still needs."""
    _pass_on(walk)
    for node in level:
        node.seats = [seat for seat in node.seats if walk.alive(seat)]
    return [node for node in level if node.seats]


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
    return {s: rows_of(d, walk.settings.slack_units) for s, d in zip(sessions, replies, strict=True)}
