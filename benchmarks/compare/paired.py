"""Paired comparison of two setups on the same questions: exact McNemar tests and bootstrap intervals.

Two rates with overlapping intervals can still differ for sure, since both were asked the same questions. The
questions that only one of the two got right decide.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from robustrag_integrations.evaluation.score.intervals import Interval, bootstrap_mean
from robustrag_integrations.evaluation.score.rows import AttackSpec, Row, attack_of_row


@dataclass(frozen=True)
class Comparison:
    """A comparison of two setups on the n questions that both answered: who is `right`, or `hijacked` under attack.

    `alone` and `other_alone` count questions of which the measure holds for one of them alone, and `p` is the exact
    two-sided McNemar test's, `p_holm` corrected for all tests of the run; None where the measure is no yes or no (a
    judge's score, as a share of 100). `difference` is the mean of `setup` minus that of `against`, with a paired 95%
    bootstrap interval.
    """

    dataset: str
    task: str
    model: str
    attack: AttackSpec
    setup: str
    against: str
    measure: str
    n: int
    alone: int | None
    other_alone: int | None
    difference: Interval
    p: float | None
    p_holm: float | None = None


def compare(rows: Iterable[Row]) -> tuple[Comparison, ...]:
    """Every setup of a model beside the first, vanilla RAG where it was run, on the same questions and attack.

    Questions that one of the two failed on are left out. Of rows there is one per key.
    """
    by_attack: dict[tuple[str, str, str, AttackSpec], dict[str, dict[str, Row]]] = {}
    for row in rows:
        if row.get("error") is None:
            about = (row["dataset"], row["task"], row["model"], attack_of_row(row))
            by_attack.setdefault(about, {}).setdefault(row["setup"], {})[row["question_id"]] = row
    found = [Comparison(*about, *pair) for about, setups in by_attack.items() for pair in _pairs(setups, about[3])]
    corrected = iter(holm([c.p for c in found if c.p is not None]))
    return tuple(c if c.p is None else replace(c, p_holm=next(corrected)) for c in found)


def _pairs(setups: Mapping[str, Mapping[str, Row]], attack: AttackSpec) -> Iterator[tuple[Any, ...]]:
    first, *others = sorted(setups, key=lambda name: next(iter(setups[name].values()))["defense"] != "vanilla")
    for setup in others:
        both = [(setups[setup][q]["scores"], setups[first][q]["scores"]) for q in setups[setup] if q in setups[first]]
        for measure, score in (("right", "correct"), ("hijacked", "hijacked")):
            scored = [(a[score], b[score]) for a, b in both]
            values = [(float(a), float(b)) for a, b in scored if a is not None and b is not None]
            if values and (measure == "right" or attack.name != "none"):
                yield setup, first, measure, *_measured(values)


def _measured(values: Sequence[tuple[float, float]]) -> tuple[int, int | None, int | None, Interval, float | None]:
    difference = bootstrap_mean([a - b for a, b in values], limits=(-1.0, 1.0))
    if not all(v in (0.0, 1.0) for pair in values for v in pair):
        return len(values), None, None, difference, None
    first, second = sum(a > b for a, b in values), sum(b > a for a, b in values)
    return len(values), first, second, difference, mcnemar(first, second)


def mcnemar(first: int, second: int) -> float:
    """The exact two-sided p-value that questions which only the first or only the second gets right are coin flips."""
    from scipy.stats import binomtest

    return float(binomtest(first, first + second).pvalue) if first + second else 1.0


def holm(values: Sequence[float]) -> list[float]:
    """P-values corrected for their number, so that the chance of any false finding among them stays at the level."""
    order = sorted(range(len(values)), key=values.__getitem__)
    found, largest = [0.0] * len(values), 0.0
    for place, i in enumerate(order):
        largest = max(largest, min(1.0, (len(values) - place) * values[i]))
        found[i] = largest
    return found
