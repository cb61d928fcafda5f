"""Performing a certification plan's requests with the core's models."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from robustrag_integrations.certification.requests import CertificationReply, Score
from robustrag_integrations.metrics import GuardedMetric, Metric
from robustrag_integrations.models.base import TextModel
from robustrag_integrations.plans.requests import Ask


class Scorer:
    """Scores responses with a metric; a response that the metric fails on scores 0.

    Attributes:
        metric: the metric, and what went wrong in it.
    """

    def __init__(self, metric: Metric, references: Sequence[str]) -> None:
        self.metric, self._references = GuardedMetric(metric), tuple(references)

    def scores(self, responses: Sequence[str]) -> list[float]:
        """One score per response.

        Raises:
            RobustRAGError: a judge could not be asked.
        """
        return [self.metric(text, self._references) for text in responses]


class TextCertifier(Scorer):
    """Performs the requests of a certificate that asks for text, with a `TextModel`."""

    def __init__(self, model: TextModel, metric: Metric, references: Sequence[str]) -> None:
        super().__init__(metric, references)
        self._model = model
        self._finals = model.finals()

    def __call__(self, request: object) -> CertificationReply:
        """Perform one request."""
        if isinstance(request, Score):
            return self.scores(request.responses)
        ask = _asked(request)
        if ask.role == "final":
            return self._finals.answer(ask.prompts)
        return self._model.generate(ask.prompts, ask.role)

    async def aperform(self, request: object) -> CertificationReply:
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


def _asked(request: object) -> Ask:
    if not isinstance(request, Ask):
        raise TypeError(f"a text model cannot perform {type(request).__name__}")
    return request
