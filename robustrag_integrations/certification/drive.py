"""Performing a certification plan's requests with the core's models."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from robustrag_integrations.certification.requests import CertificationReply, Score
from robustrag_integrations.display import printable
from robustrag_integrations.errors import ModelError
from robustrag_integrations.metrics import Metric, checked_score, metric_name
from robustrag_integrations.models.base import TextModel
from robustrag_integrations.plans.requests import Ask


class Scorer:
    """Scores responses with a metric.

    A response over which the metric raises, or gives no number of at least 0, has the worst score: a lower bound stays
    one, and one odd response does not cost the certificate.
    """

    def __init__(self, metric: Metric, references: Sequence[str]) -> None:
        self._metric, self._references = metric, tuple(references)
        self._failures: list[str] = []

    def scores(self, responses: Sequence[str]) -> list[float]:
        """One score per response.

        Raises:
            ModelError: a judge could not be asked.
        """
        return [self._score(text) for text in responses]

    def warnings(self) -> tuple[str, ...]:
        """Says how many responses could not be scored, and why the first could not."""
        if not self._failures:
            return ()
        return (
            f"the metric {metric_name(self._metric)} failed on {len(self._failures)} responses, which score 0 "
            f"({self._failures[0]})",
        )

    def _score(self, text: str) -> float:
        try:
            return checked_score(self._metric(text, self._references), self._metric)
        except ModelError:  # says nothing about this response
            raise
        except Exception as error:
            self._failures.append(f"{type(error).__name__}: {printable(str(error), 200)}")
            return 0.0


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
