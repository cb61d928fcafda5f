"""Passages with nothing to read cost no call, abstain, and are named once."""

from __future__ import annotations

import asyncio

import pytest

from robustrag_integrations import CallableModel, ConsensusAggregation, KeywordAggregation, MajorityVoting
from tests.helpers.leaks import eventually
from tests.helpers.scripted import ScriptedModel

BLANK = ["", "  \n\t", "\u200b\u2060", "\xa0"]
PASSAGES = ["Rome, they say.", *BLANK, "It is Rome.", "Rome."]
NAMED = "4 passages blank (p1; p2; p3; p4)"


@pytest.mark.parametrize("defense", [ConsensusAggregation, KeywordAggregation, MajorityVoting])
@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_blank_passage_costs_no_call_and_abstains(defense, asynchronous: bool) -> None:
    asked = []
    model = CallableModel(lambda prompt: asked.append(prompt) or "Rome")
    choices = {"choices": ["Rome", "Oslo"]} if defense is MajorityVoting else {}
    made = defense(model, group_by="passage")
    answer = (
        asyncio.run(made.aanswer("Where?", PASSAGES, **choices))
        if asynchronous
        else made.answer("Where?", PASSAGES, **choices)
    )
    assert answer.text == "Rome"
    calls = 3 + (defense is KeywordAggregation)  # its final one
    assert len(asked) == answer.model_calls == answer.spending.calls == calls
    assert [report.status for report in answer.sources] == ["supports", *["abstained"] * 4, "supports", "supports"]
    assert [warning for warning in answer.warnings if "blank" in warning] == [f"{NAMED}: a scan without text?"]
    assert not [warning for warning in answer.warnings if "in full" in warning or "empty" in warning]


def test_prompts_that_are_one_batch_stay_together() -> None:
    # Whoever writes a passage must not choose the shape of the batch that the others are read in.
    batches = []

    class Batched(ScriptedModel):
        def generate(self, prompts, role, until=None):
            batches.append(len(prompts))
            return super().generate(prompts, role)

    made = ConsensusAggregation(Batched(lambda text: "Rome"), group_by="passage")
    answer = made.answer("Where?", PASSAGES)
    assert (batches, answer.model_calls) == ([7], 7)
    assert [report.status for report in answer.sources].count("abstained") == 4


def test_blank_sources_are_never_waited_for() -> None:
    asked = []
    model = CallableModel(lambda prompt: asked.append(prompt) or "Rome", max_concurrency=2)
    made = MajorityVoting(model, group_by="passage", stop_when_decided=True)
    answer = made.answer("Where?", [*BLANK, *["Rome."] * 8], choices=["Rome", "Oslo"])
    assert answer.text == "Rome"
    assert eventually(lambda: len(asked) == answer.model_calls)  # the answer does not wait for the last calls' threads
    assert len(asked) == answer.model_calls <= 8
