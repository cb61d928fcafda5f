"""Model calls of a decoding certificate, which perform its plan's requests (paper, section IV-C)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from robustrag_integrations.certification.certify import CertificationRun, Certifier
from robustrag_integrations.certification.findings import ByMetric, Question
from robustrag_integrations.certification.metrics import Metric
from robustrag_integrations.defenses.decoding.certificate import Branch, Grow, OpenTrees, decoding_certification_plan
from robustrag_integrations.defenses.decoding.settings import DecodingSettings
from robustrag_integrations.defenses.decoding.token_choice import ONE
from robustrag_integrations.models.base import DecodingModel, DecodingSession, Distributions
from robustrag_integrations.plans.drivers import DecodingPerformer
from robustrag_integrations.plans.requests import Ask

_Prefix = tuple[int, ...]


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
