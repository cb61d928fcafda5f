"""Model calls of a decoding certificate, which perform its plan's requests (paper, section IV-C)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import Any

from robustrag_integrations.certification.certify import (
    CertificationRun,
    Scorer,
    numerics_of,
    precision_warnings,
    repeat_warnings,
)
from robustrag_integrations.certification.findings import ByMetric, CertificationReply, Question
from robustrag_integrations.defenses.decoding.certificate import decoding_certification_plan
from robustrag_integrations.defenses.decoding.requests import Branch, Grow, OpenTrees
from robustrag_integrations.defenses.decoding.settings import DecodingSettings
from robustrag_integrations.defenses.decoding.states import PrefixStates
from robustrag_integrations.defenses.decoding.token_choice import ONE
from robustrag_integrations.metrics import Metric
from robustrag_integrations.models.base import DecodingModel, Distributions


def decoding_run(
    question: Question,
    settings: DecodingSettings,
    model: DecodingModel,
    metric: Metric,
) -> CertificationRun:
    """Return a certification over next-token probabilities."""
    doubts = repeat_warnings(model)
    certifier = DecodingCertifier(model, metric, question.references)

    def numerics() -> dict[str, Any]:
        return {**numerics_of(model), "slack": settings.slack / ONE}

    named = str(getattr(model, "description", type(model).__name__))
    return CertificationRun(
        question,
        decoding_certification_plan(question, settings, model.codec, metric=certifier.metric),
        certifier,
        certifier.aperform,
        "decoding",
        {**settings.as_dict(), "model": named},
        numerics,
        (*model.warnings, *doubts, *precision_warnings(numerics())),
        certifier.profile,
        certifier.metric,
    )


class DecodingCertifier(Scorer):
    """Performs the requests of a decoding certification with a `DecodingModel`; holds the states of the trees.

    The sessions have as many rows as those of inference.
    """

    def __init__(self, model: DecodingModel, metric: Metric, references: Sequence[str]) -> None:
        super().__init__(metric, references)
        self._model = model
        self._states: list[PrefixStates] = []
        self._counts: Counter[str] = Counter()

    def __call__(self, request: object) -> CertificationReply:
        """Perform one request."""
        if isinstance(request, ByMetric):
            return self.scores(request.responses)
        if isinstance(request, OpenTrees):
            none, limit = request.no_retrieval, request.max_new_tokens
            self._states = [
                PrefixStates(partial(self._model.open_session, prompts, none, limit), self._counts)
                for prompts in request.sessions
            ]
            return [states.opening for states in self._states]
        if isinstance(request, Grow):
            return self._grow(request)
        raise TypeError(f"a decoding model cannot perform {type(request).__name__}")

    async def aperform(self, request: object) -> CertificationReply:
        """Perform one request in a thread; cancelling takes effect between two prompts, or two tokens."""
        return await self._model.in_thread(self, request)

    def profile(self) -> dict[str, Any]:
        """Counts and noise of the scored prefixes; JSON-safe."""
        if not self._counts["packed"]:
            return {}
        return {
            "prefixes_packed": self._counts["packed"],
            "prefixes_alone": self._counts["alone"],
            "noise_measured": max(states.measured for states in self._states),
            "noise_bound": max(states.noise for states in self._states),
        }

    def _grow(self, request: Grow) -> list[Distributions]:
        scored: dict[Branch, Distributions] = {}
        for index, states in enumerate(self._states):
            branches = [b for b in request.branches if b.session == index]
            if branches:
                scored.update(zip(branches, states.grow(branches, exact=request.exact), strict=True))
        return [scored[b] for b in request.branches]
