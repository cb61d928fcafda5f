"""The request that asks how likely given replies are."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from robustrag_integrations import CallableModel, ConsensusAggregation
from robustrag_integrations.models.base import Scores
from robustrag_integrations.models.wrappers import AroundModel, TwoModels
from robustrag_integrations.plans.drivers import TextPerformer
from robustrag_integrations.plans.requests import Reply, Score
from robustrag_integrations.prompts import Prompt
from tests.helpers.scripted import BARE
from tests.helpers.worlds import ConsensusModel, Move

REQUEST = Score((Prompt("one"), Prompt("two")), ("a", "bb", "ccc"))


class Scoring(CallableModel):
    """Finds shorter texts likelier, and cannot score the prompt "two"."""

    can_score = True

    def score(self, prompts: Sequence[Prompt], texts: Sequence[str]) -> list[Scores | None]:
        return [None if prompt.text == "two" else [-float(len(text)) for text in texts] for prompt in prompts]


def performed(model: CallableModel | TwoModels | AroundModel) -> list[Reply]:
    performer = TextPerformer(model)
    return [performer(REQUEST), asyncio.run(performer.aperform(REQUEST))]


@pytest.mark.parametrize(("reader", "can"), [(Scoring(str), True), (CallableModel(str), False)])
def test_of_two_models_the_reader_scores(reader: CallableModel, can: bool) -> None:
    model = TwoModels(reader, CallableModel(str) if can else Scoring(str))
    assert model.can_score is can
    assert performed(model) == [[[-1.0, -2.0, -3.0], None] if can else None] * 2


@pytest.mark.parametrize(
    ("replies", "can_score", "rounds"), [("XXYYN", True, 2), ("XXYYN", False, 1), ("XXXXN", True, 1)]
)
def test_scores_are_a_round_and_no_calls(replies: str, can_score: bool, rounds: int) -> None:
    said = {"X": "Xylo", "Y": "Yoke", "N": "I don't know"}
    model = ConsensusModel(lambda text: Move(said[replies[int(text)]]), can_score=can_score)
    answer = ConsensusAggregation(model, prompts=BARE).answer("q", [str(place) for place in range(5)])
    assert answer.abstained is (rounds == 1 and "Y" in replies)
    assert (answer.spending.rounds, answer.spending.calls, answer.model_calls) == (rounds, 5, 5)
