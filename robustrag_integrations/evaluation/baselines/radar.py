"""The smallest cut between answers that are trusted and those that are not, then the trusted passages (RADAR)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from robustrag_integrations._util.settings import setting
from robustrag_integrations.defenses.registry import BASELINES, Method
from robustrag_integrations.evaluation.baselines.base import (
    Baseline,
    BaselineSettings,
    Function,
    isolated_answers,
    reread,
)
from robustrag_integrations.evaluation.baselines.contradiction import differ, judged, share_said
from robustrag_integrations.plans.asking import PlanInput
from robustrag_integrations.plans.finish import Draft
from robustrag_integrations.plans.requests import Steps

CONFLICT = 0.8  # a contradiction above this leaves no agreement between two answers
LEAST, MOST = 0.01, 0.99  # what the capacities from the source and to the sink are scaled to
_SAME = 1e-9  # eigenvalues that close are one
_UNITS = 1e8  # flows are counted in whole numbers

Matrix = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class CutSettings(BaselineSettings):
    """The settings of RADAR."""

    method: ClassVar[Method] = BASELINES["radar"]

    contradicts: Function = setting(
        differ, "tells if two answers contradict each other; compares words by default", is_function=True
    )
    entails: Function = setting(
        share_said, "tells if an answer implies another; compares words by default", is_function=True
    )


class MinCut(Baseline):
    """RADAR.

    Every passage is asked alone. Those that answer become a graph: agreement ties two passages to each other, agreement
    with the strongest group and a good rank tie a passage to the source, contradiction with that group ties it to the
    sink. What a smallest cut leaves on the source's side is read together. `contradicts` and `entails` are functions of
    (question, first answer, second answer) that give True, False or a probability; by default words are compared
    (`contradiction.differ` and `share_said`).
    """

    settings_type = CutSettings

    @staticmethod
    def plan_of(inputs: PlanInput, settings: CutSettings) -> Steps[Draft]:
        """Isolated answers, the cut, one reading of what it keeps."""
        heard = yield from isolated_answers(inputs, settings)
        answering = [i for i, said in enumerate(heard.found) if said is not None]
        answers = [heard.found[i] or "" for i in answering]
        against = judged("contradicts", settings.contradicts, inputs.query, answers)
        agreed = judged("entails", settings.entails, inputs.query, answers)
        kept = [answering[i] for i in trusted(against, agreed)]
        return (yield from reread(inputs, settings, kept, heard=heard))


def trusted(contradicts: Sequence[Sequence[float]], entails: Sequence[Sequence[float]]) -> list[int]:
    """The answers on the source's side of the cut, by rank; of n x n probabilities, each of the row on the column."""
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
    matrix: Matrix = np.array(found, dtype=np.float64)
    return np.sqrt(matrix * matrix.T)


def _scaled(shares: Matrix) -> Matrix:
    return LEAST + (MOST - LEAST) * shares


def source_side(capacities: Sequence[Sequence[float]], source: int, sink: int) -> frozenset[int]:
    """The nodes on the source's side of a smallest cut (capacities: n x n, from row to column, from 0 to 10).

    Where there are several cuts it is the smallest such side.
    """
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import breadth_first_order, maximum_flow

    graph = csr_array((np.array(capacities) * _UNITS).round().astype(np.int32))
    left = graph - maximum_flow(graph, source, sink).flow
    return frozenset(map(int, breadth_first_order(left > 0, source, return_predecessors=False)))
