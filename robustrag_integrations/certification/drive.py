"""Performing a certification plan's requests with the core's models."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import Any

from robustrag_integrations.certification.requests import (
    Branch,
    CertificationReply,
    CertificationRequest,
    Grow,
    OpenTrees,
    Score,
)
from robustrag_integrations.defenses.decoding.states import PrefixStates
from robustrag_integrations.metrics import Metric, checked_score
from robustrag_integrations.models.base import DecodingModel, Distributions, TextModel
from robustrag_integrations.plans.requests import Ask


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
        self._finals = model.finals()

    def __call__(self, request: CertificationRequest) -> CertificationReply:
        """Perform one request."""
        if isinstance(request, Score):
            return self.scores(request.responses)
        ask = _asked(request)
        if ask.role == "final":
            return self._finals.answer(ask.prompts)
        return self._model.generate(ask.prompts, ask.role)

    async def aperform(self, request: CertificationRequest) -> CertificationReply:
        """Perform one request without blocking the event loop."""
        if isinstance(request, Score):
            return await asyncio.to_thread(self.scores, request.responses)
        ask = _asked(request)
        if ask.role == "final":
            return await self._finals.aanswer(ask.prompts)
        return await self._model.agenerate(ask.prompts, ask.role)

    def profile(self) -> dict[str, Any]:
        """How the final answers were computed; JSON-safe."""
        return self._finals.profile


def _asked(request: CertificationRequest) -> Ask:
    if not isinstance(request, Ask):
        raise TypeError(f"a text model cannot perform {type(request).__name__}")
    return request


class DecodingCertifier(_Scorer):
    """Performs the requests of a decoding certification with a `DecodingModel`; holds the states of the trees.

    The sessions have as many rows as those of inference.
    """

    def __init__(self, model: DecodingModel, metric: Metric, references: Sequence[str]) -> None:
        super().__init__(metric, references)
        self._model = model
        self._states: list[PrefixStates] = []
        self._counts: Counter[str] = Counter()

    def __call__(self, request: CertificationRequest) -> CertificationReply:
        """Perform one request."""
        if isinstance(request, Score):
            return self.scores(request.responses)
        if isinstance(request, OpenTrees):
            none, limit = request.no_retrieval, request.max_new_tokens
            self._states = [
                PrefixStates(partial(self._model.open_session, prompts, none, limit), self._counts)
                for prompts in request.sessions
            ]
            return [states.root.opening for states in self._states]
        if isinstance(request, Grow):
            return self._grow(request)
        raise TypeError(f"a decoding model cannot perform {type(request).__name__}")

    async def aperform(self, request: CertificationRequest) -> CertificationReply:
        """Perform one request in a thread; cancelling takes effect between two requests."""
        return await asyncio.to_thread(self, request)

    def profile(self) -> dict[str, Any]:
        """How the prefixes were scored; JSON-safe."""
        if not self._counts["packed"]:
            return {}
        return {
            "prefixes_packed": self._counts["packed"],
            "prefixes_alone": self._counts["alone"],
            "noise_measured": max(states.measured for states in self._states),
            "noise_reckoned_with": max(states.noise for states in self._states),
        }

    def _grow(self, request: Grow) -> list[Distributions]:
        told: dict[Branch, Distributions] = {}
        for index, states in enumerate(self._states):
            branches = [b for b in request.branches if b.session == index]
            if branches:
                told.update(zip(branches, states.grow(branches, exact=request.exact), strict=True))
        return [told[b] for b in request.branches]
