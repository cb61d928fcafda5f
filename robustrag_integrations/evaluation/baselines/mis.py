"""The largest set of answers that do not contradict each other, then its passages together (ReliabilityRAG)."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from robustrag_integrations._util.settings import setting
from robustrag_integrations.defenses.registry import BASELINES, Method
from robustrag_integrations.defenses.vanilla.defense import in_one_prompt
from robustrag_integrations.evaluation.baselines.base import (
    Baseline,
    BaselineSettings,
    Function,
    isolated_answers,
    reread,
)
from robustrag_integrations.evaluation.baselines.contradiction import conflicts, differ
from robustrag_integrations.plans.asking import Heard, PlanInput
from robustrag_integrations.plans.finish import Draft
from robustrag_integrations.plans.requests import Steps

LARGEST = 20  # of what is searched exactly; the search is exponential in it


@dataclass(frozen=True, kw_only=True)
class SetSettings(BaselineSettings):
    """The settings of the exact form of ReliabilityRAG."""

    method: ClassVar[Method] = BASELINES["mis"]

    contradicts: Function = setting(
        differ, "tells if two answers contradict each other; compares words by default", is_function=True
    )


@dataclass(frozen=True, kw_only=True)
class SamplingSettings(SetSettings):
    """The settings of the sampling form of ReliabilityRAG."""

    method: ClassVar[Method] = BASELINES["mis-sampling"]

    samples: int = setting(20, "number of draws; the set of them is searched exactly", least=1, most=LARGEST)
    sample_size: int = setting(2, "number of passages of a draw", least=1)
    decay: float = setting(0.9, "weight of a rank relative to the one above it", least=0.01, most=1)
    seed: int = setting(0, "of the draws", least=0)


class IndependentSet(Baseline):
    """ReliabilityRAG's exact form.

    Every passage is asked alone. Among those that answer, the largest set of which no two contradict each other is
    kept, of several the one of better ranks; its raw passages are then read together. `contradicts` is a function of
    (question, first answer, second answer) that gives True, False or a probability, of which 0.5 is enough; by
    default words are compared (`contradiction.differ`).
    """

    settings_type = SetSettings

    @staticmethod
    def plan_of(inputs: PlanInput, settings: SetSettings) -> Steps[Draft]:
        """Isolated answers, the largest set, one reading of its passages.

        Raises:
            ValueError: more passages answer than can be searched exactly.
        """
        choices = inputs.choices
        if (count := len(inputs.groups)) > LARGEST:
            raise ValueError(
                f"mis searches at most {LARGEST} passages exactly, got {count}; use mis-sampling, or a top_k of at "
                f"most {LARGEST}"
            )
        heard = yield from isolated_answers(inputs, settings, choices)
        kept = consistent(settings.contradicts, inputs.query, heard)
        return (yield from reread(inputs, settings, choices, kept, heard=heard))


class SampledIndependentSet(Baseline):
    """ReliabilityRAG's sampling form for many passages.

    Each of `samples` small draws of passages is asked alone, instead of each passage; better ranks are drawn more
    often. The draws are ordered by their ranks. The largest set of draws whose answers do not contradict each other is
    kept; all its raw passages are read together.
    """

    settings_type = SamplingSettings

    @staticmethod
    def plan_of(inputs: PlanInput, settings: SamplingSettings) -> Steps[Draft]:
        """The draws' answers, the largest set of them, one reading of its passages."""
        choices = inputs.choices
        drawn = draws(len(inputs.groups), settings)
        contexts = [in_one_prompt([inputs.groups[place] for place in places], i) for i, places in enumerate(drawn)]
        heard = yield from isolated_answers(replace(inputs, groups=tuple(contexts)), settings, choices)
        agreeing = consistent(settings.contradicts, inputs.query, heard)
        kept = {place for i in agreeing for place in drawn[i]}
        evidence = {"draws": [list(places) for places in drawn], "kept_draws": agreeing}
        return (yield from reread(inputs, settings, choices, kept, evidence=evidence))


def consistent(contradicts: Function, query: str, heard: Heard[str]) -> list[int]:
    """The places of the largest set of groups that answer and do not contradict each other."""
    answering = [i for i, said in enumerate(heard.found) if said is not None]
    found = conflicts(contradicts, query, [heard.found[i] or "" for i in answering])
    return [answering[i] for i in largest_independent_set(found)]


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


def largest_independent_set(conflicts: Sequence[Sequence[bool]]) -> tuple[int, ...]:
    """The largest set of which no two conflict; of several, the first in dictionary order.

    Args:
        conflicts: n x n, symmetric; the diagonal counts for nothing. n is at most `LARGEST`.

    Raises:
        ValueError: n is larger.
    """
    count = len(conflicts)
    if count > LARGEST:
        raise ValueError(f"{count} answers are too many for an exact search (at most {LARGEST})")
    rivals = [sum(1 << j for j in range(count) if j != i and conflicts[i][j]) for i in range(count)]
    best: tuple[int, ...] = ()

    def search(chosen: tuple[int, ...], free: int) -> None:
        nonlocal best
        if len(chosen) + free.bit_count() <= len(best):
            return
        if not free:
            best = chosen
            return
        first = (free & -free).bit_length() - 1
        rest = free & ~(1 << first)
        search((*chosen, first), rest & ~rivals[first])
        if rivals[first] & rest:  # without a rival left, the first one is in every largest set
            search(chosen, rest)

    search((), (1 << count) - 1)
    return best
