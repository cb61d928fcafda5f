"""Numbers with float noise never change a certificate: whatever the noise within its bound."""

from __future__ import annotations

import copy
import random
from collections.abc import Sequence
from functools import cache

import numpy as np
import pytest

from robustrag_integrations import DecodingAggregation
from robustrag_integrations.defenses.decoding.token_choice import ONE, TokenChoice, certain_tokens, possible_tokens
from robustrag_integrations.models.base import (
    LEAST_NOISE,
    SAFETY,
    DecodingSession,
    DecodingTree,
    Distributions,
    noise_bound,
)
from tests.helpers.scripted import BARE, ScriptedDecodingModel
from tests.helpers.worlds import graded

MEASURED = LEAST_NOISE / 2
RECKONED = SAFETY * MEASURED


class NoisyTree(DecodingTree):
    """A tree whose numbers are off: by a little in its first level, then by the whole bound."""

    def __init__(self, session, seed: int, first: float, later: float) -> None:
        self._session, self._random = session, np.random.default_rng(seed)
        self._size, self._later = first, later
        self.grown = 0

    def grow(self, prefixes: Sequence[tuple[int, ...]]) -> list[Distributions]:
        told = []
        for prefix in prefixes:
            twin = copy.copy(self._session)
            for token in prefix:
                exact = twin.append(token)
            told.append(Distributions(self._off(exact.sources), self._off(exact.no_retrieval)))
        self.grown += len(prefixes)
        self._size = self._later
        return told

    def _off(self, exact: np.ndarray) -> np.ndarray:
        return np.clip(exact + self._random.choice([-self._size, self._size], size=exact.shape), 0, 1)


class NoisyModel(ScriptedDecodingModel):
    """A scripted model with trees. (A scripted session keeps no state apart from its prefix: a copy is a fork.)"""

    def __init__(self, distribution, first: float = MEASURED, later: float = RECKONED) -> None:
        super().__init__(distribution)
        self._off = (first, later)
        self.trees: list[NoisyTree] = []

    def open_session(self, prompts, no_retrieval, max_new_tokens) -> DecodingSession:
        return self._with_tree(super().open_session(prompts, no_retrieval, max_new_tokens))

    def _with_tree(self, session) -> DecodingSession:
        def tree() -> DecodingTree:
            self.trees.append(NoisyTree(copy.copy(session), len(self.trees), *self._off))
            return self.trees[-1]

        session.fork = lambda: self._with_tree(copy.copy(session))
        session.tree = tree
        return session


def near_ties(seed: int):
    """Distributions of quarters, with a tilt that is far smaller than the noise: ties and boundaries everywhere."""

    @cache
    def distribution(text: str, prefix: tuple[int, ...]) -> list[float]:
        rng = random.Random(f"{seed}/{text}/{prefix}")
        tilt = rng.choice([0.0, 1e-7, 1e-5, 1e-3])
        raw = [rng.choice([0, 0, 1, 1, 2, 4, 8]) + tilt * rng.random() + 1e-9 for _ in range(4)]
        return [x / sum(raw) for x in raw]

    return distribution


@pytest.mark.parametrize("slack", [0.0, 2.0**-10])
def test_noise_never_changes_a_certificate(slack: float) -> None:
    grown = branched = 0
    for seed in range(120):
        eta = random.Random(seed).choice([1.0, 1.5, 2.0, 2.5])
        passages = [f"p{i}" for i in range(random.Random(-seed).choice([4, 5, 6]))]
        found = []
        for model in (ScriptedDecodingModel(near_ties(seed)), NoisyModel(near_ties(seed))):
            defense = DecodingAggregation(model, prompts=BARE, eta=eta, slack=slack, max_new_tokens=4)
            found.append(defense.certify("q", passages, "a", corruption_size=[1, 2], metric=graded))
        grown += sum(tree.grown for tree in model.trees)
        for plain, noisy in zip(*found, strict=True):
            assert {r.text for r in plain.responses} == {r.text for r in noisy.responses}
            assert (plain.tau, plain.unbounded, plain.complete) == (noisy.tau, noisy.unbounded, noisy.complete)
            assert plain.model_calls == noisy.model_calls
            branched += len(plain.responses) > 2
    assert grown > 300
    assert branched > 20


def forking(text: str, prefix: tuple[int, ...]) -> Sequence[float]:
    if len(prefix) == 3:
        return [1.0, 0, 0, 0]
    return [0, 0.7, 0.25, 0.05] if text else [0, 0, 0, 1.0]


def test_a_tree_that_strays_from_inference_is_not_used() -> None:
    model = NoisyModel(forking, first=2 * LEAST_NOISE, later=0.5)
    defense = DecodingAggregation(model, prompts=BARE, eta=2.5, slack=0.0, max_new_tokens=4)
    found = defense.certify("q", ["p"] * 8, "a", metric=graded)
    plain = DecodingAggregation(ScriptedDecodingModel(forking), prompts=BARE, eta=2.5, slack=0.0, max_new_tokens=4)
    assert found.responses == plain.certify("q", ["p"] * 8, "a", metric=graded).responses
    assert "prefixes_packed" not in found.numerics
    assert [tree.grown for tree in model.trees] == [2]


def test_what_noise_can_make_of_a_gap_is_known_before_it_is_believed() -> None:
    rng = random.Random(3)
    believed = 0
    for _ in range(20_000):
        true = TokenChoice(1, 1, 2, rng.randrange(0, 6 * ONE, ONE // 4) + rng.choice([0, 1, 50, 1000]), False)
        error = rng.choice([1, 60, 2000])
        told = TokenChoice(1, 1, 2, abs(true.gap + rng.randint(-error, error)), False)
        corrupted, eta, slack = rng.randint(0, 3), rng.choice([0, ONE, 2 * ONE]), rng.choice([0, 100])
        found = certain_tokens(told, [3], corrupted, eta, slack, error, sure=True)
        if found is not None:
            believed += 1
            assert found == possible_tokens(true, [3], corrupted, eta, slack)
            if found.kind in ("top", "either"):
                assert told.gap > error  # another token could be on top otherwise
    assert believed > 5000


@pytest.mark.parametrize(("measured", "bound"), [(0.0, LEAST_NOISE), (1e-6, 32e-6), (3.1e-5, None), (np.nan, None)])
def test_more_than_float_noise_is_not_trusted(measured: float, bound: float | None) -> None:
    assert noise_bound(measured) == (None if bound is None else pytest.approx(bound))


def silent_one(p_abstain: dict[str, float]):
    """A model in which sources abstain with these probabilities; the loud one alone would change the answer."""

    def distribution(text: str, prefix: tuple[int, ...]) -> Sequence[float]:
        if prefix:
            return [1.0, 0, 0, 0]
        return [0, 0.55, 0.45, 0] if text.startswith("p") else [0, 0, 0, 1.0]

    class Model(ScriptedDecodingModel):
        def open_session(self, prompts, no_retrieval, max_new_tokens) -> DecodingSession:
            session = super().open_session(prompts, no_retrieval, max_new_tokens)
            texts = [p.text.split("|")[0] for p in prompts]
            session.opening = copy.copy(session.opening)
            object.__setattr__(session.opening, "abstention", np.array([p_abstain.get(t, 0.0) for t in texts]))
            return session

    return Model(distribution)


def test_certificates_count_on_neither_side_of_gamma() -> None:
    passages = [f"p{i}" for i in range(6)]
    settings = {"prompts": BARE, "gamma": 0.5, "eta": 1.0, "max_new_tokens": 2}
    sure = DecodingAggregation(silent_one({}), **settings).certify("q", passages, "a", metric=graded)
    assert not sure.unbounded
    for shift in (0, 2.0**-11, -(2.0**-11)):
        unsure = DecodingAggregation(silent_one({"p0": 0.5 + shift}), **settings)
        found = unsure.certify("q", passages, "a", metric=graded)
        assert (found.tau, found.unbounded) == (0, True)
        assert "within the slack of gamma=0.5" in (found.stopped or "")
    for clear in ({"p0": 0.51}, {"p0": 0.49}):
        found = DecodingAggregation(silent_one(clear), **settings).certify("q", passages, "a", metric=graded)
        assert not found.unbounded


def test_the_radius_leaves_room_for_sources_next_to_gamma() -> None:
    passages = [f"p{i}" for i in range(7)]
    settings = {"prompts": BARE, "gamma": 0.5, "max_new_tokens": 1}

    def model(abstention: float):
        agreed = silent_one({"p0": abstention, "p1": abstention})
        agreed._distribution = lambda text, prefix: [0, 1.0, 0, 0]
        return agreed

    radii = [DecodingAggregation(model(p), **settings).answer("q", passages).radius for p in (0.4, 0.4999, 0.5001, 0.6)]
    assert radii == [3, 1, 0, 2]
    assert DecodingAggregation(model(0.4999), slack=0.0, **settings).answer("q", passages).radius == 3
