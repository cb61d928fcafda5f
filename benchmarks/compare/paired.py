"""Paired comparison of two setups on the same questions: exact McNemar tests and bootstrap intervals.

Two rates with overlapping intervals can still differ for sure, since both were asked the same questions. The
questions that only one of the two got right decide.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from robustrag_integrations.evaluation.score.rows import AttackSpec, Row, attack_of_row
from robustrag_integrations.evaluation.score.summary import Interval, bootstrap_mean
from robustrag_integrations.evaluation.show.tables import Table, with_ends

_TESTS = (
    "Paired by question. alone: questions of which it holds for that setup and not for the other. difference: in "
    "percentage points, with its paired 95% "
    "interval. p: exact two-sided McNemar test; p (Holm): corrected for all {count} tests here. They were not planned "
    "beforehand: take them as exploratory."
)


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
    first, *others = sorted(setups, key=lambda name: next(iter(setups[name].values()))["method"] != "vanilla")
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


def comparisons_table(found: Sequence[Comparison]) -> Table:
    """The comparisons as a table; data and model have columns where they differ."""
    columns = [(n, show) for n, show in _COMPARED if n not in ("data", "model") or len({show(c) for c in found}) > 1]
    header = [name for name, _ in columns]
    rows = [[show(c) for _, show in columns] for c in found]
    notes = [_TESTS.format(count=sum(c.p is not None for c in found))]
    return Table("Differences between setups on the same questions", header, rows, header.index("n"), notes)


_COMPARED: tuple[tuple[str, Callable[[Comparison], str]], ...] = (
    ("data", lambda c: f"{c.dataset} ({c.task})"),
    ("model", lambda c: c.model),
    ("attack", lambda c: str(c.attack)),
    ("measure", lambda c: c.measure),
    ("setup", lambda c: c.setup),
    ("against", lambda c: c.against),
    ("n", lambda c: str(c.n)),
    ("alone", lambda c: _count(c.alone)),
    ("other alone", lambda c: _count(c.other_alone)),
    ("difference", lambda c: with_ends(c.difference, 100)),
    ("p", lambda c: _p(c.p)),
    ("p (Holm)", lambda c: _p(c.p_holm)),
)


def _count(value: int | None) -> str:
    return "-" if value is None else str(value)


def _p(value: float | None) -> str:
    if value is None:
        return "-"
    return "<0.0001" if value < 0.0001 else f"{value:.{4 if value < 0.01 else 3}f}"
