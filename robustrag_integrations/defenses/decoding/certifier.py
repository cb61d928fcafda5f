"""Model calls of a decoding certificate, which perform its plan's requests (paper, section IV-C)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from robustrag_integrations.certification.certify import CertificationRun, Certifier
from robustrag_integrations.certification.findings import ByMetric, Question
from robustrag_integrations.certification.metrics import Metric
from robustrag_integrations.defenses.decoding.certificate import (
    Branch,
    Grow,
    OpenTrees,
    decoding_certification_plan,
)
from robustrag_integrations.defenses.decoding.settings import DecodingSettings
from robustrag_integrations.defenses.decoding.token_choice import ONE
from robustrag_integrations.models.base import (
    DecodingModel,
    DecodingSession,
    DecodingTree,
    Distributions,
    noise_bound,
)
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
        self._counts: Counter[str] = Counter()

    def __call__(self, request: object) -> Any:
        """Perform one request."""
        if isinstance(request, ByMetric):
            return self.scores(request)
        if isinstance(request, OpenTrees):
            none, limit = request.no_retrieval, request.max_new_tokens
            openings = [partial(self.model.open_session, prompts, none, limit) for prompts in request.sessions]
            self._states = [_PrefixStates(opening, self._counts) for opening in openings]
            return [states.opening for states in self._states]
        if isinstance(request, Ask):  # about trusted passages
            return DecodingPerformer(self.model)(request)
        assert isinstance(request, Grow)  # noqa: S101 - all that its plan asks
        scored: dict[Branch, Distributions] = {}
        for index, states in enumerate(self._states):
            branches = [b for b in request.branches if b.session == index]
            if branches:
                scored.update(zip(branches, states.grow(branches, exact=request.exact), strict=True))
        return [scored[b] for b in request.branches]

    async def aperform(self, request: object) -> Any:
        """Perform one request in a thread; cancelling takes effect between two prompts, or two tokens."""
        return await self.model.in_thread(self, request)

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


class _PrefixStates:
    """Scores prefixes of one session.

    As long as there is one prefix at a time, it runs through the shapes of inference. Where the prefixes fork, a tree
    takes over, if the model has one and its numbers are those of inference but for float noise.

    Attributes:
        measured: how far the tree's probabilities were from those of inference.
        noise: the bound that is assumed.
    """

    def __init__(self, opening: Callable[[], DecodingSession], counts: Counter[str]) -> None:
        self._open, self._counts = opening, counts
        self._states: dict[_Prefix, DecodingSession] = {(): opening()}
        self.opening = self._states[()].opening
        self._tree: DecodingTree | None = None
        self._root: _Prefix = ()  # where the tree begins
        self._may_plant = True
        self.measured = self.noise = 0.0

    def grow(self, branches: Sequence[Branch], *, exact: bool) -> list[Distributions]:
        """Return the distributions after these prefixes, all of one length."""
        depth = len(branches[0].prefix) - 1
        for prefix in [p for p in self._states if len(p) < depth and p and p != self._root]:
            del self._states[prefix]
        if not exact and self._tree is not None:
            return self._level(self._tree, branches)
        if not exact and self._may_plant and len(branches) > 1:
            return self._plant(branches)
        return [self._exact(b) for b in branches]

    def _plant(self, branches: Sequence[Branch]) -> list[Distributions]:
        """Begin a tree above these prefixes. Its last one is scored both ways: a tree that strays is not used."""
        self._may_plant = False
        parents = {b.prefix[:-1] for b in branches}
        root = parents.pop()
        tree = self._states[root].tree() if root in self._states and not parents else None
        if tree is None:
            return [self._exact(b) for b in branches]
        grown = tree.grow([b.prefix[len(root) :] for b in branches])
        last = self._exact(branches[-1])
        self.measured = _distance(grown[-1], last)
        noise = noise_bound(self.measured)
        if noise is None:
            return [*(self._exact(b) for b in branches[:-1]), last]
        self._tree, self._root, self.noise = tree, root, noise
        self._counts["packed"] += len(branches) - 1
        return [*(replace(t, noise=noise) for t in grown[:-1]), last]

    def _level(self, tree: DecodingTree, branches: Sequence[Branch]) -> list[Distributions]:
        self._counts["packed"] += len(branches)
        grown = tree.grow([b.prefix[len(self._root) :] for b in branches])
        return [replace(t, noise=self.noise) for t in grown]

    def _exact(self, branch: Branch) -> Distributions:
        self._counts["alone"] += 1
        *parent, token = branch.prefix
        state = self._state(tuple(parent), used_up=branch.only_child and self._tree is None)
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


def _distance(packed: Distributions, exact: Distributions) -> float:
    """Return the largest difference between two distributions; infinite if they hold NaN."""
    pairs = ((packed.sources, exact.sources), (packed.no_retrieval, exact.no_retrieval))
    gap = np.max([np.max(np.abs(a - b), initial=0.0) for a, b in pairs])
    return float(np.nan_to_num(gap, nan=np.inf))
