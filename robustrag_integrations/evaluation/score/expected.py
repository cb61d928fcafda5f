"""Expected certified accuracy: what a model that samples can be certified for (proof: docs/internals/proofs.md).

P[right while any k' groups are replaced] >= P[right, and the radius is at least k']. The right side is a share of
clean questions, so that counting bounds it. It is about the data set, and never about a single answer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from robustrag_integrations.defenses.registry import METHODS
from robustrag_integrations.evaluation.score.intervals import Interval, clopper_pearson

LARGEST_SIZE = 5  # k' up to which it is reported

Row = Mapping[str, Any]


@dataclass(frozen=True)
class ExpectedAccuracy:
    """The share that is right with a radius of at least k'.

    Attributes:
        corruption_size: k', how many groups the attacker replaces (substitution).
        held: number of questions that were right with such a radius.
        share: of all, failed ones included, with its 95% Clopper-Pearson interval.
    """

    corruption_size: int
    held: int
    share: Interval


def expected_accuracy(rows: Sequence[Row]) -> tuple[ExpectedAccuracy, ...]:
    """Over clean rows of one setup, one per question; failed rows count as not right.

    Empty for long answers, for which nothing is simply right, for methods without a radius, and for rows that do not
    say what their radius promises.
    """
    if any(r["task"] == "long" or r["defense"] not in METHODS for r in rows):
        return ()
    runs = [_run(row) for row in rows if row.get("error") is not None or row["answer"].get("determinism")]
    return _shares(runs) if any(row.get("error") is None for row in rows) else ()


def _run(row: Row) -> tuple[bool, int]:
    """Tell whether a row is right, and return the radius as far as something is promised of it."""
    if row.get("error") is not None:
        return False, 0
    return row["scores"]["correct"] == 1, promised_radius(row["answer"])


def promised_radius(answer: Mapping[str, Any]) -> int:
    """The radius of a stored answer; 0 where its method promises nothing of this run."""
    found = answer.get("determinism")
    return int(answer["radius"]) if found and found["scope"] != "nothing" else 0


def _shares(runs: Sequence[tuple[bool, int]]) -> tuple[ExpectedAccuracy, ...]:
    """One per k', from 1 to the largest radius that occurs."""
    if not runs:
        return ()
    largest = max(1, min(LARGEST_SIZE, max(radius for _, radius in runs)))
    found = []
    for size in range(1, largest + 1):
        held = sum(right and radius >= size for right, radius in runs)
        found.append(ExpectedAccuracy(size, held, clopper_pearson(held, len(runs))))
    return tuple(found)
