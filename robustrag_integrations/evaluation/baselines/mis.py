"""The largest set of answers that do not contradict each other, then its passages together (ReliabilityRAG)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from robustrag_integrations._util.settings import setting
from robustrag_integrations.defenses.registry import BASELINES, Method
from robustrag_integrations.evaluation.baselines.base import (
    Baseline,
    BaselineSettings,
    Function,
    isolated_answers,
    reread,
)
from robustrag_integrations.evaluation.baselines.contradiction import conflicts, differ
from robustrag_integrations.plans.asking import PlanInput
from robustrag_integrations.plans.finish import Draft
from robustrag_integrations.plans.requests import Steps

LARGEST = 20  # of what is searched exactly; the search is exponential in it


@dataclass(frozen=True, kw_only=True)
class SetSettings(BaselineSettings):
    """The settings of ReliabilityRAG's exact form."""

    method: ClassVar[Method] = BASELINES["mis"]

    contradicts: Function = setting(
        differ, "tells if two answers contradict each other; compares words by default", is_function=True
    )


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
            ValueError: there are more passages than can be searched exactly.
        """
        if (count := len(inputs.groups)) > LARGEST:
            raise ValueError(f"mis searches at most {LARGEST} passages exactly, got {count}; use a smaller top_k")
        heard = yield from isolated_answers(inputs, settings)
        answering = [i for i, said in enumerate(heard.found) if said is not None]
        found = conflicts(settings.contradicts, inputs.query, [heard.found[i] or "" for i in answering])
        kept = [answering[i] for i in largest_independent_set(found)]
        return (yield from reread(inputs, settings, kept, heard=heard))


def largest_independent_set(conflicts: Sequence[Sequence[bool]]) -> tuple[int, ...]:
    """The largest set of which no two conflict (n x n, symmetric); of several, the first in dictionary order."""
    count = len(conflicts)
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
