"""Model calls of a decoding certificate, which perform its plan's requests (paper, section IV-C)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from robustrag_integrations.certification.certify import (
    CertificationRun,
    Certifier,
    numerics_of,
    precision_warnings,
    repeat_warnings,
)
from robustrag_integrations.certification.findings import ByMetric, CertificationReply, Question
from robustrag_integrations.defenses.decoding.certificate import (
    Branch,
    Grow,
    OpenTrees,
    decoding_certification_plan,
)
from robustrag_integrations.defenses.decoding.settings import DecodingSettings
from robustrag_integrations.defenses.decoding.token_choice import ONE
from robustrag_integrations.metrics import Metric
from robustrag_integrations.models.base import (
    DecodingModel,
    DecodingSession,
    DecodingTree,
    Distributions,
    Opening,
    noise_bound,
)

_Prefix = tuple[int, ...]


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
        return {**numerics_of(model), "slack": settings.slack_units / ONE}

    named = str(getattr(model, "description", type(model).__name__))
    return CertificationRun(
        question,
        decoding_certification_plan(question, settings, model.codec),
        certifier,
        "decoding",
        {**settings.as_dict(), "model": named},
        numerics,
        (*model.warnings, *doubts, *precision_warnings(numerics())),
    )


class DecodingCertifier(Certifier):
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


class PrefixStates:
    """Scores prefixes of one session.

    As long as there is one prefix at a time, it runs through the shapes of inference. Where the prefixes fork, a tree
    takes over, if the model has one and its numbers are those of inference but for float noise.

    Args:
        opening: opens the session (again).
        counts: the counters of scored prefixes, by kind.
    """

    def __init__(self, opening: Callable[[], DecodingSession], counts: Counter[str]) -> None:
        self._open, self._counts = opening, counts
        self._states: dict[_Prefix, DecodingSession] = {(): opening()}
        self._tree: DecodingTree | None = None
        self._root: _Prefix = ()  # where the tree begins
        self._no_tree = False
        self.measured = 0.0  # how far the tree's probabilities were from those of inference
        self.noise = 0.0  # the bound that is assumed

    @property
    def opening(self) -> Opening:
        """The session's opening reply."""
        return self._states[()].opening

    def grow(self, branches: Sequence[Branch], *, exact: bool) -> list[Distributions]:
        """Return the distributions after these prefixes, all of one length."""
        self._forget(min(len(b.prefix) for b in branches) - 1)
        if exact:
            return [self._exact(b) for b in branches]
        if self._tree is None and len(branches) > 1 and not self._no_tree:
            return self._plant(branches)
        if self._tree is None:
            return [self._exact(b) for b in branches]
        return self._level(self._tree, branches)

    def _plant(self, branches: Sequence[Branch]) -> list[Distributions]:
        """Begin a tree above these prefixes. Its last one is scored both ways: a tree that strays is not used."""
        self._no_tree = True
        parents = {b.prefix[:-1] for b in branches}
        self._root = parents.pop()
        state = self._states.get(self._root)
        tree = state.tree() if state is not None and not parents else None
        if tree is None:
            return [self._exact(b) for b in branches]
        grown = tree.grow([b.prefix[len(self._root) :] for b in branches])
        last = self._exact(branches[-1])
        self.measured = _distance(grown[-1], last)
        noise = noise_bound(self.measured)
        if noise is None:
            return [*(self._exact(b) for b in branches[:-1]), last]
        self._tree, self.noise = tree, noise
        self._counts["packed"] += len(branches) - 1
        return [*(replace(t, noise=noise) for t in grown[:-1]), last]

    def _level(self, tree: DecodingTree, branches: Sequence[Branch]) -> list[Distributions]:
        self._counts["packed"] += len(branches)
        grown = tree.grow([b.prefix[len(self._root) :] for b in branches])
        return [replace(t, noise=self.noise) for t in grown]

    def _forget(self, depth: int) -> None:
        kept = ((), self._root) if self._tree else ((),)
        for prefix in [p for p in self._states if len(p) < depth and p not in kept]:
            del self._states[prefix]

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
    pairs = ((packed.groups, exact.groups), (packed.no_retrieval, exact.no_retrieval))
    gap = np.max([np.max(np.abs(a - b), initial=0.0) for a, b in pairs])
    return float(np.nan_to_num(gap, nan=np.inf))
