"""The largest set of answers that do not contradict each other, then its passages together (ReliabilityRAG)."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

from robustrag_integrations.defenses.base import PlanInput
from robustrag_integrations.defenses.peers.contradiction import conflicts
from robustrag_integrations.defenses.peers.door import Baseline, options_of
from robustrag_integrations.defenses.peers.independent_set import LARGEST, largest_independent_set
from robustrag_integrations.defenses.peers.rereading import isolated_answers, reread
from robustrag_integrations.defenses.peers.settings import MISSettings, SamplingSettings
from robustrag_integrations.defenses.vanilla import in_one_prompt
from robustrag_integrations.models.base import TextModel
from robustrag_integrations.plans.asking import Reading
from robustrag_integrations.plans.requests import Plan
from robustrag_integrations.prompts import PromptSet, Task
from robustrag_integrations.replies.reading import CutReplies


class IndependentSet(Baseline):
    """ReliabilityRAG's exact form, a baseline without a guarantee on the text of its answer.

    Every passage is asked alone. Among those that answer, the largest set of which no two contradict each other is
    kept, of several the one of better ranks; its raw passages are then read together.

    Args:
        model: what is asked.
        task: `short_answer` (default) or `multiple_choice`.
        prompts: your own `PromptSet`; None for the project's.
        cut_replies: what a reply does that was cut: `"abstain"` (default) or `"count"`.
        contradicts: a function of (question, first answer, second answer) that gives True, False or a probability, of
            which 0.5 is enough; or its name, `module:function`. None compares words (`contradiction.differ`).
    """

    settings_type = MISSettings
    settings: MISSettings

    def __init__(
        self,
        model: TextModel,
        *,
        task: Task | None = None,
        prompts: PromptSet | None = None,
        cut_replies: CutReplies | None = None,
        contradicts: Callable[..., Any] | str | None = None,
    ) -> None:
        super().__init__(model)
        self.settings = MISSettings.of(task=task, prompts=prompts, cut_replies=cut_replies, contradicts=contradicts)

    @staticmethod
    def plan_of(inputs: PlanInput, settings: MISSettings) -> Plan:
        """Isolated answers, the largest set, one reading of its passages.

        Raises:
            ValueError: more passages answer than can be searched exactly.
        """
        choices = options_of(inputs, settings, IndependentSet)
        if len(inputs.groups) > LARGEST:
            raise ValueError(
                f"mis searches at most {LARGEST} passages exactly, got {len(inputs.groups)}; use mis-sampling, or a "
                f"top_k of at most {LARGEST}"
            )
        return _mis_plan(inputs, settings, choices)


def _mis_plan(inputs: PlanInput, settings: MISSettings, choices: Sequence[str] | None) -> Plan:
    readings = yield from isolated_answers(inputs.query, inputs.groups, settings, choices)
    kept = consistent(settings.contradicts, inputs.query, readings)
    return (
        yield from reread(inputs, settings, choices, kept, defense="mis", readings=readings, calls=len(inputs.groups))
    )


def consistent(contradicts: Callable[..., Any], query: str, readings: Sequence[Reading[str]]) -> list[int]:
    """The places of the largest set of readings that answer and do not contradict each other."""
    answering = [i for i, reading in enumerate(readings) if reading.found is not None]
    found = conflicts(contradicts, query, [readings[i].found or "" for i in answering])
    return [answering[i] for i in largest_independent_set(found)]


class SampledIndependentSet(Baseline):
    """ReliabilityRAG's sampling form for many passages, a baseline without a guarantee.

    What is asked alone is not each passage but each of `samples` small draws of passages, where better ranks are drawn
    more often. The draws are ordered by their ranks. The largest set of draws whose answers do not contradict each
    other is kept; all its raw passages are read together.

    Args:
        model: what is asked.
        task: `short_answer` (default) or `multiple_choice`.
        prompts: your own `PromptSet`; None for the project's.
        cut_replies: what a reply does that was cut: `"abstain"` (default) or `"count"`.
        contradicts: as for `IndependentSet`.
        samples: how many draws; 20.
        sample_size: how many different passages each holds; 2.
        decay: the passage at place i (from 0) has the weight decay^i; 0.9.
        seed: of the draws.
    """

    settings_type = SamplingSettings
    settings: SamplingSettings

    def __init__(
        self,
        model: TextModel,
        *,
        task: Task | None = None,
        prompts: PromptSet | None = None,
        cut_replies: CutReplies | None = None,
        contradicts: Callable[..., Any] | str | None = None,
        samples: int | None = None,
        sample_size: int | None = None,
        decay: float | None = None,
        seed: int | None = None,
    ) -> None:
        super().__init__(model)
        self.settings = SamplingSettings.of(
            task=task,
            prompts=prompts,
            cut_replies=cut_replies,
            contradicts=contradicts,
            samples=samples,
            sample_size=sample_size,
            decay=decay,
            seed=seed,
        )

    @staticmethod
    def plan_of(inputs: PlanInput, settings: SamplingSettings) -> Plan:
        """The draws' answers, the largest set of them, one reading of its passages."""
        return _sampling_plan(inputs, settings, options_of(inputs, settings, SampledIndependentSet))


def _sampling_plan(inputs: PlanInput, settings: SamplingSettings, choices: Sequence[str] | None) -> Plan:
    drawn = draws(len(inputs.groups), settings)
    contexts = [in_one_prompt([inputs.groups[place] for place in places], i) for i, places in enumerate(drawn)]
    readings = yield from isolated_answers(inputs.query, contexts, settings, choices)
    agreeing = consistent(settings.contradicts, inputs.query, readings)
    kept = {place for i in agreeing for place in drawn[i]}
    evidence = {"draws": [list(places) for places in drawn], "kept_draws": agreeing}
    return (
        yield from reread(
            inputs, settings, choices, kept, defense="mis-sampling", calls=len(contexts), evidence=evidence
        )
    )


def draws(count: int, settings: SamplingSettings) -> list[tuple[int, ...]]:
    """The places of each draw, in rank order; better draws come first. The seed decides them, not the passages."""
    chance = random.Random(settings.seed)
    found = []
    for _ in range(settings.samples if count else 0):
        left = list(range(count))
        chosen: list[int] = []
        while left and len(chosen) < settings.sample_size:
            [place] = chance.choices(left, [settings.decay**i for i in left])
            left.remove(place)
            chosen.append(place)
        found.append(tuple(sorted(chosen)))
    return sorted(found)
