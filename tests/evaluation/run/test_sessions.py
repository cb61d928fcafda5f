"""Decoding sessions that settings share: the numbers of a session of one's own, computed once."""

from __future__ import annotations

import random
from typing import Any

import pytest

from robustrag_integrations.defenses.decoding.defense import DecodingAggregation
from robustrag_integrations.evaluation.run.sessions import SharedSessions
from robustrag_integrations.models.base import DecodingSession
from tests.helpers.scripted import BARE, ScriptedDecodingModel

PASSAGES = [f"passage {n}" for n in range(5)]


def drawn(text: str, tokens: tuple[int, ...]) -> list[float]:
    """Probabilities of eleven tokens, always the same for the same text and tokens."""
    rng = random.Random(f"{text}|{tokens}")
    weights = [rng.random() ** 4 for _ in range(11)]
    return [weight / sum(weights) for weight in weights]


class Sharing(ScriptedDecodingModel):
    """Opens shared sessions, and counts the steps of the model's own."""

    def __init__(self) -> None:
        super().__init__(self._counted)
        self.steps: list[tuple[str, tuple[int, ...]]] = []
        self._own = ScriptedDecodingModel(self._counted)
        self._shared = SharedSessions(self._own)

    def _counted(self, text: str, tokens: tuple[int, ...]) -> list[float]:
        self.steps.append((text, tokens))
        return drawn(text, tokens)

    def open_session(self, *asked: Any) -> DecodingSession:
        return self._shared.open(*asked)[0]

    @property
    def opened(self) -> int:
        return self._own.sessions


def answers(model: Any, question: str, etas: tuple[float, ...]) -> list[tuple[str, int]]:
    made = [DecodingAggregation(model, eta=eta, max_new_tokens=6, prompts=BARE) for eta in etas]
    return [(a.text, a.radius) for a in (defense.answer(question, PASSAGES) for defense in made)]


@pytest.mark.parametrize("seed", range(20))
def test_answers_are_those_of_sessions_of_ones_own(seed: int) -> None:
    etas = tuple(random.Random(seed).sample([0.0, 0.05, 0.1, 0.3, 0.6, 1.0], 4))
    shared = Sharing()
    assert answers(shared, f"q{seed}", etas) == answers(ScriptedDecodingModel(drawn), f"q{seed}", etas)


def test_settings_that_go_the_same_way_cost_one_session_and_each_step_once() -> None:
    once = Sharing()
    answers(once, "q", (0.0,))
    often = Sharing()
    answers(often, "q", (0.0, 0.0, 0.0))
    assert (often.opened, len(often.steps)) == (1, len(once.steps))


def test_other_prompts_take_the_place_of_the_last_ones() -> None:
    model = Sharing()
    assert answers(model, "a", (0.0,)) == answers(ScriptedDecodingModel(drawn), "a", (0.0,))
    answers(model, "b", (0.0,))
    answers(model, "a", (0.0,))
    assert model.opened == 3


def test_a_certificate_through_shared_sessions_is_that_of_ones_own() -> None:
    def certified(model: Any) -> list[tuple[float, bool]]:
        defense = DecodingAggregation(model, eta=0.3, max_new_tokens=3, prompts=BARE)
        defense.answer("q", PASSAGES)
        found = defense.certify("q", PASSAGES, "a", corruption_size=[0, 1])
        return [(c.tau, c.certified) for c in found]

    assert certified(Sharing()) == certified(ScriptedDecodingModel(drawn))
