"""The smallest cut between answers that are trusted and those that are not, then the trusted passages (RADAR)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from robustrag_integrations.defenses.base import PlanInput
from robustrag_integrations.defenses.peers.contradiction import judged
from robustrag_integrations.defenses.peers.door import Baseline, options_of
from robustrag_integrations.defenses.peers.min_cut import source_side
from robustrag_integrations.defenses.peers.rereading import isolated_answers, reread
from robustrag_integrations.defenses.peers.settings import RadarSettings
from robustrag_integrations.models.base import TextModel
from robustrag_integrations.plans.requests import Plan
from robustrag_integrations.prompts import PromptSet, Task
from robustrag_integrations.replies.reading import CutReplies

CONFLICT = 0.8  # a contradiction above this leaves no agreement between two answers
LEAST, MOST = 0.01, 0.99  # what the capacities from the source and to the sink are scaled to
_SAME = 1e-9  # eigenvalues that close are one

Matrix = NDArray[np.float64]


class MinCut(Baseline):
    """RADAR, a baseline without a guarantee.

    Every passage is asked alone. Those that answer become a graph: agreement ties two passages to each other, agreement
    with the strongest group and a good rank tie a passage to the source, contradiction with that group ties it to the
    sink. What a smallest cut leaves on the source's side is read together.

    Args:
        model: what is asked.
        task: `short_answer` (default) or `multiple_choice`.
        prompts: your own `PromptSet`; None for the project's.
        cut_replies: what a reply does that was cut: `"abstain"` (default) or `"count"`.
        contradicts: a function of (question, first answer, second answer) that gives True, False or a probability; or
            its name, `module:function`. None compares words (`contradiction.differ`).
        entails: a function like that of whether the first answer implies the second; None compares words
            (`contradiction.share_said`).
    """

    settings_type = RadarSettings
    settings: RadarSettings

    def __init__(
        self,
        model: TextModel,
        *,
        task: Task | None = None,
        prompts: PromptSet | None = None,
        cut_replies: CutReplies | None = None,
        contradicts: Callable[..., Any] | str | None = None,
        entails: Callable[..., Any] | str | None = None,
    ) -> None:
        super().__init__(model)
        self.settings = RadarSettings.of(
            task=task, prompts=prompts, cut_replies=cut_replies, contradicts=contradicts, entails=entails
        )

    @staticmethod
    def plan_of(inputs: PlanInput, settings: RadarSettings) -> Plan:
        """Isolated answers, the cut, one reading of what it keeps."""
        return _radar_plan(inputs, settings, options_of(inputs, settings, MinCut))


def _radar_plan(inputs: PlanInput, settings: RadarSettings, choices: Sequence[str] | None) -> Plan:
    readings = yield from isolated_answers(inputs.query, inputs.groups, settings, choices)
    answering = [i for i, reading in enumerate(readings) if reading.found is not None]
    answers = [readings[i].found or "" for i in answering]
    against = judged("contradicts", settings.contradicts, inputs.query, answers)
    agreed = judged("entails", settings.entails, inputs.query, answers)
    kept = [answering[i] for i in trusted(against, agreed)]
    return (
        yield from reread(inputs, settings, choices, kept, defense="radar", readings=readings, calls=len(inputs.groups))
    )


def trusted(contradicts: Sequence[Sequence[float]], entails: Sequence[Sequence[float]]) -> list[int]:
    """The answers on the source's side of the cut, by rank.

    Args:
        contradicts: n x n, the probability that the row's answer contradicts the column's.
        entails: n x n, the probability that it implies the column's.
    """
    count = len(contradicts)
    if not count:
        return []
    graph, source, sink = capacities(contradicts, entails), count, count + 1
    return sorted(source_side(graph, source, sink) - {source})


def capacities(contradicts: Sequence[Sequence[float]], entails: Sequence[Sequence[float]]) -> list[list[float]]:
    """(n + 2) x (n + 2): the answers, then the source, then the sink."""
    conflict, agreement = _both_ways(contradicts), _both_ways(entails)
    agreement[conflict > CONFLICT] = 0
    np.fill_diagonal(agreement, 0)
    weight = leading(agreement)
    count = len(weight)
    by_rank = np.array([math.exp(-i / count) for i in range(1, count + 1)])
    graph = np.zeros((count + 2, count + 2))
    graph[:count, :count] = agreement
    graph[count, :count] = _scaled(weight * by_rank / max((weight * by_rank).max(), _SAME))
    graph[:count, count + 1] = _scaled(conflict @ weight / max(weight.sum(), _SAME))
    return [list(map(float, row)) for row in graph]


def leading(agreement: Matrix) -> Matrix:
    """n: the leading eigenvector, at least 0 everywhere; where several lead, what power iteration from ones ends in."""
    values, vectors = np.linalg.eigh(agreement + 0.01 * np.eye(len(agreement)))
    top = vectors[:, values >= values[-1] - _SAME]
    found: Matrix = np.maximum(top @ (top.T @ np.ones(len(agreement))), 0)
    return found


def _both_ways(found: Sequence[Sequence[float]]) -> Matrix:
    matrix = np.array(found, dtype=np.float64)
    made: Matrix = np.sqrt(matrix * matrix.T)
    return made


def _scaled(shares: Matrix) -> Matrix:
    made: Matrix = LEAST + (MOST - LEAST) * shares
    return made
