"""The driver of a certification plan: performs its requests with the core's models."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import cached_property
from typing import Any

from robustrag_integrations.certification.requests import CertificationReply, Score
from robustrag_integrations.metrics import GuardedMetric, Metric
from robustrag_integrations.models.base import FinalAnswers, Response, TextModel
from robustrag_integrations.plans.keeping import Kept, fills
from robustrag_integrations.plans.requests import Ask
from robustrag_integrations.prompts import Prompt


class Scorer:
    """A scorer of responses; a response that the metric fails on scores 0.

    Attributes:
        metric: the metric, and what went wrong in it.
    """

    def __init__(self, metric: Metric, references: Sequence[str]) -> None:
        self.metric, self._references = GuardedMetric(metric), tuple(references)

    def scores(self, responses: Sequence[str]) -> list[float]:
        """Return one score per response.

        Raises:
            RobustRAGError: a judge could not be asked.
        """
        return [self.metric(text, self._references) for text in responses]


class TextCertifier(Scorer):
    """A performer of the requests of a certificate that asks a `TextModel` for text.

    Args:
        model: the model to ask.
        metric: scores the responses.
        references: the right answers.
        kept: the replies that an answer kept of the same model; it is not asked for them again.
    """

    def __init__(self, model: TextModel, metric: Metric, references: Sequence[str], kept: Kept | None = None) -> None:
        super().__init__(metric, references)
        self._model = model
        self._kept = kept

    @cached_property
    def _finals(self) -> FinalAnswers:
        """The answers to final prompts; not every method has some."""
        return self._model.finals()

    def __call__(self, request: object) -> CertificationReply:
        """Perform one request."""
        if isinstance(request, Score):
            return self.scores(request.responses)
        ask = _asked(request)
        known, unknown = self._known(ask)
        if not unknown:
            return _whole(known, ())
        if ask.role == "final":
            return _whole(known, self._finals.answer(unknown))
        return _whole(known, self._model.generate(unknown, ask.role))

    async def aperform(self, request: object) -> CertificationReply:
        """Perform one request without blocking the event loop."""
        if isinstance(request, Score):
            return await asyncio.to_thread(self.scores, request.responses)
        ask = _asked(request)
        known, unknown = self._known(ask)
        if not unknown:
            return _whole(known, ())
        if ask.role == "final":
            return _whole(known, await self._finals.aanswer(unknown))
        return _whole(known, await self._model.agenerate(unknown, ask.role))

    def _known(self, ask: Ask) -> tuple[list[Response | None], list[Prompt]]:
        """Return the kept reply of each prompt, or None; and the prompts that must be asked.

        Where prompts of a batch share its shape, all or none of them were kept, in a batch of as many.
        """
        kept, prompts = self._kept, list(ask.prompts)
        nothing: list[Response | None] = [None] * len(prompts)
        if kept is None:
            return nothing, prompts
        if ask.role == "final":
            found = [kept.finals.get(p) for p in prompts]
        else:
            found = [kept.replies.get(p) for p in prompts]
            if self._model.shares_batches:
                found = [Response("") if r is None and fills(p) else r for p, r in zip(prompts, found, strict=True)]
                if len(prompts) != kept.batch or None in found:
                    return nothing, prompts
        return found, [p for p, r in zip(prompts, found, strict=True) if r is None]

    def profile(self) -> dict[str, Any]:
        """Counts of the final answers, by how they were computed; JSON-safe."""
        return self._finals.profile


def _whole(known: Sequence[Response | None], asked: Sequence[Response]) -> list[Response]:
    """Return the replies in order, new ones in the places of those that were not known."""
    rest = iter(asked)
    return [next(rest) if response is None else response for response in known]


def _asked(request: object) -> Ask:
    if not isinstance(request, Ask):
        raise TypeError(f"a text model cannot perform {type(request).__name__}")
    return request
