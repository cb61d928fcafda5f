"""Certificate of decoding aggregation (paper, section IV-C, Algorithm 4).

The tree of all partial responses is walked level by level, once for all corruption sizes and all cases: a source's
distribution after a prefix is the same whoever else is corrupted, so each prefix is scored once, and each case sums the
rows that are its own. A case leaves the walk at its first Case 4. `DecodingCertifier` makes the model calls.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from robustrag_integrations._util.errors import ModelError
from robustrag_integrations._util.words import count_of
from robustrag_integrations.certification.certify import CertificationRun, Certifier
from robustrag_integrations.certification.findings import (
    NOTHING_BENIGN,
    Asking,
    ByMetric,
    Findings,
    Ledger,
    Question,
    smaller_size_fails,
)
from robustrag_integrations.certification.isolated import NOTHING
from robustrag_integrations.certification.metrics import Metric
from robustrag_integrations.defenses.decoding.plan import ROWS_MOVE, DecodingSettings, extend, unsettled, who_answers
from robustrag_integrations.defenses.decoding.token_choice import (
    ONE,
    FixedPoint,
    TokenSpan,
    certain_tokens,
    choose_token,
    fixed_point,
    most_probable,
)
from robustrag_integrations.grouping.passages import Source
from robustrag_integrations.models.base import DecodingModel, DecodingSession, Distributions, Opening, TokenCodec
from robustrag_integrations.models.detokenizer import IncrementalDetokenizer
from robustrag_integrations.plans.asking import truncation_warnings
from robustrag_integrations.plans.drivers import DecodingPerformer
from robustrag_integrations.plans.requests import Ask
from robustrag_integrations.text.prompts import ABSTENTION, Prompt

NOBODY_LEFT = "no untouched source takes part in decoding: one that the attacker adds decides alone"
_Prefix = tuple[int, ...]
_AT_ONCE = 16  # prefixes scored per request, so that their distributions fit in memory


@dataclass(frozen=True)
class OpenTrees:
    """A request to start a decoding session over each list of prompts; the reply is one `Opening` each, in order."""

    sessions: tuple[tuple[Prompt, ...], ...]
    no_retrieval: Prompt
    max_new_tokens: int


@dataclass(frozen=True)
class Branch:
    """A step down the tree of prefixes, in a session of `OpenTrees`; the new token is the last.

    `only_child`: nothing else will branch off the prefix before this token, so that its state can be used up.
    """

    session: int
    prefix: tuple[int, ...]
    only_child: bool


@dataclass(frozen=True)
class Grow:
    """A request to score these prefixes; the reply is one `Distributions` each, in order.

    States of prefixes shorter than the parents of these are not needed any more, the roots excepted.
    """

    branches: tuple[Branch, ...]


@dataclass(frozen=True)
class _Seat:
    """The position of a case's answering sources: (session, row) each."""

    size: int  # index of the findings
    number: int  # of the case within its size
    rows: tuple[tuple[int, int], ...]
    corrupted: int


@dataclass
class _Node:
    """A partial response, and the cases in which it is possible."""

    text: IncrementalDetokenizer
    seats: list[_Seat]
    only_child: bool = False

    @property
    def sessions(self) -> list[int]:
        """The sessions that hold a row of one of the cases."""
        return sorted({session for seat in self.seats for session, _ in seat.rows})


@dataclass(frozen=True)
class _Rows:
    """A session's rows after a prefix, in fixed point.

    Attributes:
        scores: [rows, V], each at most `noise` from that of inference.
        fallbacks: the tokens that may be the no-retrieval token; those of inference if `sure`.
    """

    scores: FixedPoint
    fallbacks: tuple[int, ...]
    noise: int = 0
    sure: bool = True

    @classmethod
    def of(cls, distributions: Distributions, slack: int) -> _Rows:
        """Convert a session's reply.

        The fallbacks are the no-retrieval token, and those that float noise (a 64th of the slack for all sums) could
        put in its place.
        """
        for source, failure in enumerate(distributions.failures):
            if failure is not None:
                raise ModelError(f"nothing can be certified while requests fail; row {source}: {failure}")
        noise = math.ceil(distributions.noise * ONE)
        best = most_probable(distributions.no_retrieval)
        if not slack and not noise:
            return cls(fixed_point(distributions.sources), (best,))
        row = fixed_point(distributions.no_retrieval[None])[0]
        behind = int(row[best]) - row
        near = tuple(dict.fromkeys((best, *map(int, np.flatnonzero(behind <= slack // 64)))))
        sure = not noise or np.count_nonzero(behind <= slack // 64 + 2 * noise) == 1
        return cls(fixed_point(distributions.sources), near if slack else (best,), noise, bool(sure))


_Spans = list[tuple[_Seat, TokenSpan | None]]
_Places = dict[tuple[int, tuple[tuple[int, ...], ...]], list[tuple[int, int]]]


def decoding_certification_plan(
    question: Question, settings: DecodingSettings, codec: TokenCodec
) -> Asking[tuple[Findings, ...]]:
    """Certify all corruption sizes of a question in one walk over the tree of partial responses."""
    sizes = [Findings(size, question.cases(size)) for size in question.sizes]
    walk = _Walk(question, settings, codec, sizes, Ledger(question.max_model_calls))
    for found in sizes:
        if not all(case.sources for case in found.cases):
            found.open_ended(NOTHING_BENIGN)
    walk.pass_on()
    seats, rows = yield from walk.open()
    if seats:
        yield from walk.down(_Node(IncrementalDetokenizer(codec, settings.stop, before_marks=True), seats), rows)
    for found in sizes:
        if found.model_calls is None:
            found.model_calls = walk.ledger.spent
    return tuple(sizes)


@dataclass
class _Walk:
    """The walk down the tree, for all corruption sizes; `sizes` has the findings of each."""

    question: Question
    settings: DecodingSettings
    codec: TokenCodec
    sizes: list[Findings]
    ledger: Ledger

    def pass_on(self) -> None:
        """Settle every larger attacker where a smaller one brings tau to 0."""
        failed: int | None = None
        for found in self.sizes:
            if failed is not None and not found.done:
                found.settle(smaller_size_fails(failed))
            if found.done and found.model_calls is None:
                found.model_calls = self.ledger.spent
            if failed is None and found.done and found.certified and found.tau == 0:
                failed = found.size

    def open(self) -> Asking[tuple[list[_Seat], dict[int, _Rows]]]:
        """Read all untouched sources, in sessions of as many rows as inference has, and seat the cases in them."""
        batches, places = _sessions(self.sizes)
        if len(batches) > self.ledger.left:
            self._give_up(f"{len(batches)} decoding sessions would have to be opened; raise max_model_calls")
        if not batches or len(batches) > self.ledger.left:
            return [], {}
        query, settings = self.question.query, self.settings
        prompts = tuple(settings.isolated_prompts(query, batch) for batch in batches)
        request = OpenTrees(prompts, settings.no_retrieval_prompt(query), settings.max_new_tokens)
        openings: Sequence[Opening] = yield request
        self.ledger.spent += len(batches)
        if any(opening.distributions.moved for opening in openings):
            self._give_up(ROWS_MOVE)
            return [], {}
        read = list(zip(batches, (o.abstention for o in openings), strict=True))
        answering = {(s, r) for s, (sources, p) in enumerate(read) for r in who_answers(sources, p, settings.gamma)}
        unsure = {(s, r) for s, (sources, p) in enumerate(read) for r in unsettled(sources, p, settings)}
        seats = []
        for index, found in enumerate(self.sizes):
            used = {place for c in found.cases for place in places.get((c.total, c.ranks), ())}
            found.warnings = tuple(truncation_warnings([openings[s].truncated[row] for s, row in used]))
            for number, case in enumerate(found.cases):
                if found.done:
                    break
                sources = places[case.total, case.ranks]
                if case.corrupted and (noisy := unsure.intersection(sources)):
                    found.open_ended(
                        f"for {count_of(len(noisy), 'untouched source')} the probability of abstaining is within "
                        f"the slack of gamma={settings.gamma:g}: which of them answer is a matter of float noise"
                    )
                elif rows := tuple(place for place in sources if place in answering):
                    seats.append(_Seat(index, number, rows, case.corrupted))
                elif case.corrupted:
                    found.open_ended(NOBODY_LEFT)
                else:
                    [score] = yield from self.ledger.scored([ABSTENTION])
                    found.add(ABSTENTION, score, "no source answers", number)
        self.pass_on()
        return seats, {s: _Rows.of(o.distributions, settings.slack_units) for s, o in enumerate(openings)}

    def _give_up(self, why: str) -> None:
        for found in self.sizes:
            found.give_up(why)

    def down(self, root: _Node, rows: dict[int, _Rows]) -> Asking[None]:
        """Walk the tree breadth first; the root's rows are known."""
        level = yield from self._expanded([root], [self._judged(root, rows)])
        while level := self._living(level):
            needed = sum(len(node.sessions) for node in level)
            if needed > self.ledger.left:
                last = max((s.size for node in level for s in node.seats), key=lambda i: (self.sizes[i].size, i))
                self.sizes[last].give_up(
                    f"{needed:,} more to score, and {count_of(self.ledger.left, 'model call')} left; raise "
                    "max_model_calls, or eta"
                )
                continue
            spans: list[_Spans] = []
            for start in range(0, len(level), _AT_ONCE):
                spans += yield from self._grown(level[start : start + _AT_ONCE])
            level = yield from self._expanded(level, spans)

    def _living(self, level: Sequence[_Node]) -> list[_Node]:
        """Return the nodes that some undecided case still needs."""
        self.pass_on()
        for node in level:
            node.seats = [seat for seat in node.seats if not self.sizes[seat.size].done]
        return [node for node in level if node.seats]

    def _grown(self, part: Sequence[_Node]) -> Asking[list[_Spans]]:
        branches = tuple(Branch(s, tuple(n.text.tokens), n.only_child) for n in part for s in n.sessions)
        distributions: Sequence[Distributions] = yield Grow(branches)
        self.ledger.spent += len(branches)
        replies = iter(distributions)
        rows = [{s: _Rows.of(next(replies), self.settings.slack_units) for s in node.sessions} for node in part]
        return [self._judged(node, scored) for node, scored in zip(part, rows, strict=True)]

    def _judged(self, node: _Node, replies: dict[int, _Rows]) -> _Spans:
        """Return what can follow a node in each case; None where the noise of the numbers leaves it open."""
        spans: _Spans = []
        for seat in node.seats:
            scores = np.stack([replies[s].scores[row] for s, row in seat.rows])
            here, eta = replies[seat.rows[0][0]], self.settings.eta_units
            choice = choose_token(scores, here.fallbacks[0], eta)
            slack = self.settings.slack_units if seat.corrupted else 0
            error = 2 * sum(replies[s].noise for s, _ in seat.rows)
            span = certain_tokens(choice, here.fallbacks, seat.corrupted, eta, slack, error, sure=here.sure)
            spans.append((seat, span))
        return spans

    def _expanded(self, level: Sequence[_Node], spans: Sequence[_Spans]) -> Asking[list[_Node]]:
        """Return the partial responses that follow a level, and score the finished ones."""
        following: list[_Node] = []
        leaves: list[tuple[str, list[_Seat]]] = []
        for node, known in zip(level, spans, strict=True):
            children = 0
            for token, seats in self._follows(node, known).items():
                text = node.text.fork()
                _, complete = extend(text, token, self.settings.max_new_tokens)
                if complete:
                    text.finish()
                    leaves.append((text.shown or ABSTENTION, seats))
                else:
                    children += 1
                    following.append(_Node(text, seats))
            if children == 1:
                following[-1].only_child = True
        scores = yield from self.ledger.scored(text for text, _ in leaves)
        for (response, seats), score in zip(leaves, scores, strict=True):
            for seat in seats:
                self.sizes[seat.size].add(response, score, "a path of the decoding tree", seat.number)
        return following

    def _follows(self, node: _Node, spans: _Spans) -> dict[int, list[_Seat]]:
        """Return per token that can follow a node the cases in which it can."""
        follows: dict[int, list[_Seat]] = {}
        for seat, span in spans:
            if self.sizes[seat.size].done:
                continue
            if span is None or span.kind == "open":
                self.sizes[seat.size].open_ended(
                    f"after {self.codec.decode(node.text.tokens)!r:.200} the {seat.corrupted} corrupted sources "
                    "can decide the next token"
                )
            for token in span.tokens if span is not None else ():
                follows.setdefault(token, []).append(seat)
        return follows


def _sessions(sizes: Sequence[Findings]) -> tuple[list[list[Source]], _Places]:
    """Distinct untouched sources packed into sessions of as many rows as inference has; where each case's are."""
    batches: list[list[Source]] = []
    seat_of: dict[tuple[int, tuple[int, ...]], tuple[int, int]] = {}
    open_batch: dict[int, int] = {}
    places: _Places = {}
    for case in (case for found in sizes if not found.done for case in found.cases):
        for ranks, source in zip(case.ranks, case.sources, strict=True):
            if (case.total, ranks) in seat_of:
                continue
            at = open_batch.get(case.total)
            if at is None or len(batches[at]) == case.total:
                at = open_batch[case.total] = len(batches)
                batches.append([])
            seat_of[case.total, ranks] = (at, len(batches[at]))
            batches[at].append(source)
        places[case.total, case.ranks] = [seat_of[case.total, ranks] for ranks in case.ranks]
    for total, at in {(total, at) for (total, _), (at, _) in seat_of.items()}:
        batches[at] += [NOTHING] * (total - len(batches[at]))
    return batches, places


def decoding_run(
    question: Question, settings: DecodingSettings, model: DecodingModel, metric: Metric
) -> CertificationRun:
    """Return a certification over next-token probabilities."""
    named = str(getattr(model, "description", type(model).__name__))
    return CertificationRun(
        question,
        decoding_certification_plan(question, settings, model.codec),
        DecodingCertifier(model, metric, question.references),
        "decoding",
        {**settings.as_dict(), "model": named},
        {"slack": settings.slack_units / ONE},
    )


class DecodingCertifier(Certifier):
    """Performs the requests of a decoding certification with a `DecodingModel`; holds the states of the trees."""

    draws = False

    def __init__(self, model: DecodingModel, metric: Metric, references: Sequence[str]) -> None:
        super().__init__(model, metric, references)
        self._states: list[_PrefixStates] = []

    def __call__(self, request: object) -> Any:
        """Perform one request."""
        if isinstance(request, ByMetric):
            return self.scores(request)
        if isinstance(request, OpenTrees):
            none, limit = request.no_retrieval, request.max_new_tokens
            openings = [partial(self.model.open_session, prompts, none, limit) for prompts in request.sessions]
            self._states = [_PrefixStates(opening) for opening in openings]
            return [states.opening for states in self._states]
        if isinstance(request, Ask):  # about trusted passages
            return DecodingPerformer(self.model)(request)
        assert isinstance(request, Grow)  # noqa: S101 - all that its plan asks
        scored: dict[Branch, Distributions] = {}
        for index, states in enumerate(self._states):
            branches = [b for b in request.branches if b.session == index]
            if branches:
                scored.update(zip(branches, states.grow(branches), strict=True))
        return [scored[b] for b in request.branches]

    async def aperform(self, request: object) -> Any:
        """Perform one request in a thread; cancelling takes effect between two prompts, or two tokens."""
        return await self.model.in_thread(self, request)


class _PrefixStates:
    """Scores prefixes of one session, each in the shapes of inference."""

    def __init__(self, opening: Callable[[], DecodingSession]) -> None:
        self._open = opening
        self._states: dict[_Prefix, DecodingSession] = {(): opening()}
        self.opening = self._states[()].opening

    def grow(self, branches: Sequence[Branch]) -> list[Distributions]:
        """Return the distributions after these prefixes, all of one length."""
        depth = len(branches[0].prefix) - 1
        for prefix in [p for p in self._states if p and len(p) < depth]:
            del self._states[prefix]
        return [self._scored(b) for b in branches]

    def _scored(self, branch: Branch) -> Distributions:
        *parent, token = branch.prefix
        state = self._state(tuple(parent), used_up=branch.only_child)
        reply = state.append(token)
        self._states[branch.prefix] = state
        return reply

    def _state(self, prefix: _Prefix, *, used_up: bool) -> DecodingSession:
        """Return a session that has read this prefix and may be advanced."""
        if used_up and prefix and prefix in self._states:
            return self._states.pop(prefix)
        known = next(n for n in range(len(prefix), -1, -1) if prefix[:n] in self._states)
        copied = self._states[prefix[:known]].fork()
        session, read = (copied, known) if copied is not None else (self._open(), 0)
        for token in prefix[read:]:
            session.append(token)
        return session
