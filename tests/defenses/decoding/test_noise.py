"""What float noise within its bound can make of a step and of an answer, and what is not believed because of it."""

from __future__ import annotations

import copy
import random
from collections.abc import Sequence

import numpy as np

from robustrag_integrations import DecodingAggregation
from robustrag_integrations.defenses.decoding.token_choice import ONE, TokenChoice, certain_tokens, possible_tokens
from robustrag_integrations.models.base import DecodingSession
from tests.helpers.scripted import BARE, ScriptedDecodingModel
from tests.helpers.worlds import graded


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
