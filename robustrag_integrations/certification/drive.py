"""Performing a certification plan's requests with the core's models."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from robustrag_integrations.certification.requests import (
    Branch,
    CertificationReply,
    CertificationRequest,
    Grow,
    OpenTrees,
    Score,
)
from robustrag_integrations.defenses.plan import Ask
from robustrag_integrations.metrics import Metric, checked_score
from robustrag_integrations.models.base import DecodingModel, DecodingSession, Distributions, Response, TextModel


class _Scorer:
    def __init__(self, metric: Metric, references: Sequence[str]) -> None:
        self._metric, self._references = metric, tuple(references)

    def scores(self, responses: Sequence[str]) -> list[float]:
        return [checked_score(self._metric(text, self._references), self._metric) for text in responses]


class TextCertifier(_Scorer):
    """Performs the requests of a keyword or voting certification with a `TextModel`."""

    def __init__(self, model: TextModel, metric: Metric, references: Sequence[str]) -> None:
        super().__init__(metric, references)
        self._model = model

    def __call__(self, request: CertificationRequest) -> CertificationReply:
        """Perform one request."""
        if isinstance(request, Score):
            return self.scores(request.responses)
        ask = _asked(request)
        if ask.role == "final" and self._model.shares_batches:  # inference asks final prompts one by one
            return [reply for prompt in ask.prompts for reply in self._model.generate([prompt], ask.role)]
        return self._model.generate(ask.prompts, ask.role)

    async def aperform(self, request: CertificationRequest) -> CertificationReply:
        """Perform one request without blocking the event loop."""
        if isinstance(request, Score):
            return await asyncio.to_thread(self.scores, request.responses)
        ask = _asked(request)
        if ask.role == "final" and self._model.shares_batches:
            replies: list[Response] = []
            for prompt in ask.prompts:
                replies += await self._model.agenerate([prompt], ask.role)
            return replies
        return await self._model.agenerate(ask.prompts, ask.role)


def _asked(request: CertificationRequest) -> Ask:
    if not isinstance(request, Ask):
        raise TypeError(f"a text model cannot perform {type(request).__name__}")
    return request


class DecodingCertifier(_Scorer):
    """Performs the requests of a decoding certification with a `DecodingModel`; holds the states of the tree.

    Every prefix runs through the shapes of inference: its tokens one by one, in sessions of as many rows.
    """

    def __init__(self, model: DecodingModel, metric: Metric, references: Sequence[str]) -> None:
        super().__init__(metric, references)
        self._model = model
        self._opened: OpenTrees | None = None
        self._states: dict[tuple[int, tuple[int, ...]], DecodingSession] = {}

    def __call__(self, request: CertificationRequest) -> CertificationReply:
        """Perform one request."""
        if isinstance(request, Score):
            return self.scores(request.responses)
        if isinstance(request, OpenTrees):
            self._opened = request
            self._states = {(index, ()): self._open(index) for index in range(len(request.sessions))}
            return [session.opening for session in self._states.values()]
        if isinstance(request, Grow):
            self._forget(min(len(b.prefix) for b in request.branches) - 1)
            return [self._grow(branch) for branch in request.branches]
        raise TypeError(f"a decoding model cannot perform {type(request).__name__}")

    async def aperform(self, request: CertificationRequest) -> CertificationReply:
        """Perform one request in a thread; cancelling takes effect between two requests."""
        return await asyncio.to_thread(self, request)

    def _open(self, index: int) -> DecodingSession:
        if self._opened is None:
            raise TypeError("a decoding certification must open its trees before it grows them")
        return self._model.open_session(
            self._opened.sessions[index], self._opened.no_retrieval, self._opened.max_new_tokens
        )

    def _forget(self, depth: int) -> None:
        gone = [key for key in self._states if 0 < len(key[1]) < depth]
        for key in gone:
            del self._states[key]

    def _grow(self, branch: Branch) -> Distributions:
        *parent, token = branch.prefix
        state = self._state(branch.session, tuple(parent), used_up=branch.only_child)
        reply = state.append(token)
        self._states[branch.session, branch.prefix] = state
        return reply

    def _state(self, index: int, prefix: tuple[int, ...], *, used_up: bool) -> DecodingSession:
        """A session that has read this prefix, and that may be advanced."""
        if used_up and prefix and (index, prefix) in self._states:
            return self._states.pop((index, prefix))
        known = next(n for n in range(len(prefix), -1, -1) if (index, prefix[:n]) in self._states)
        copied = self._states[index, prefix[:known]].fork()
        session, read = (copied, known) if copied is not None else (self._open(index), 0)
        for token in prefix[read:]:
            session.append(token)
        return session
