"""Candidates made from rows, and the chosen one. Pure functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from robustrag_integrations.defenses.registry import METHODS
from robustrag_integrations.evaluation.score.expected import expected_accuracy
from robustrag_integrations.evaluation.score.intervals import RATE, Interval, bootstrap_mean, clopper_pearson

Prefer = Literal["certified", "accuracy"]

CLOSE = 0.01  # of the questions: how far below the best accuracy a candidate may be; one question in any case

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Candidate:
    """One choice of settings, as it did on some questions. A question that failed counts as not right.

    Attributes:
        label: its name in tables.
        defense: the method.
        settings: of the method, and what one vote is.
        top_k: number of passages that were retrieved; None for all.
        accuracy: the share that is right, with its 95% interval (exact, where answers are right or wrong).
        certified: the share that is right with a radius of at least k' (expected certified accuracy).
        abstention: the share without an answer.
        radius: the mean radius of the right answers.
        calls: the mean number of model calls of a question.
        failed: number of questions that failed.
    """

    label: str
    defense: str
    settings: Mapping[str, Any]
    top_k: int | None
    accuracy: Interval
    certified: Interval
    abstention: Interval
    radius: float = 0.0
    calls: float = 0.0
    failed: int = 0


def candidate_of(rows: Sequence[Row], size: int) -> Candidate:
    """Measure a setup on its clean rows: one per question, at least one. `size` is k'."""
    first, count = rows[0], len(rows)
    done = [row for row in rows if row["error"] is None]
    right = [0.0 if row["error"] is not None else float(row["scores"]["correct"] or 0) for row in rows]
    silent = sum(bool(row["scores"]["abstained"]) for row in done)
    calls = [row["cost"]["model_calls"] for row in done]
    return Candidate(
        label=first["setup"],
        defense=first["defense"],
        settings=first["settings"],
        top_k=first["top_k"],
        accuracy=_share(right),
        certified=_expected(rows, size),
        abstention=clopper_pearson(silent, count),
        radius=_mean([row["answer"]["radius"] for row in done if row["scores"]["correct"] == 1]),
        calls=_mean([c for c in calls if c is not None]),
        failed=count - len(done),
    )


def choose(candidates: Sequence[Candidate], prefer: Prefer) -> Candidate:
    """Return the candidate to use.

    `certified`: of those whose accuracy is within 1 point (or one question) of the best, the most often certified; of
    equal ones the more accurate, the less often silent, the one with fewer calls, with the larger radius, and with
    more of its settings at their defaults.
    `accuracy`: the most accurate; of equal ones the most often certified, and so on.

    Args:
        candidates: at least one, all of the same questions.
        prefer: one of the two.
    """
    best = max(_value(c.accuracy) for c in candidates)
    room = max(CLOSE, 1 / max(candidates[0].accuracy.n, 1)) + 1e-9
    near = [c for c in candidates if prefer == "accuracy" or _value(c.accuracy) >= best - room]

    def worth(c: Candidate) -> tuple[float, ...]:
        two = (_value(c.certified), _value(c.accuracy))
        two = two if prefer == "certified" else two[::-1]
        return (*two, -_value(c.abstention), -c.calls, c.radius, -_changes(c))

    return max(near, key=worth)  # of equals the first


def _changes(candidate: Candidate) -> int:
    """Count the thresholds that are not at their defaults."""
    defaults = METHODS[candidate.defense].in_force({})
    return sum(candidate.settings.get(name, value) != value for name, value in defaults.items())


def _value(interval: Interval) -> float:
    return interval.mean or 0.0


def _expected(rows: Sequence[Row], size: int) -> Interval:
    found = next((e.share for e in expected_accuracy(rows) if e.corruption_size == size), None)
    return clopper_pearson(0, len(rows)) if found is None else found


def _share(values: Sequence[float]) -> Interval:
    """Return the share: with an exact interval if answers are right or wrong, bootstrapped for scores in between."""
    if set(values) <= {0.0, 1.0}:
        return clopper_pearson(int(sum(values)), len(values))
    return bootstrap_mean(values, limits=RATE)


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0
