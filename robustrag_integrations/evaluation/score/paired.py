"""Paired comparison of two setups on the same questions: exact McNemar tests and bootstrap intervals.

Two rates with overlapping intervals can still differ for sure, since both were asked the same questions. The
questions that only one of the two got right decide.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from robustrag_integrations.evaluation.score.intervals import Interval, bootstrap_mean
from robustrag_integrations.evaluation.score.rows import AttackSpec, attack_of_row

MOST_SETUPS = 4  # of which each is compared with each; of more, each with the first
DIFFERENCE = (-1.0, 1.0)

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Comparison:
    """A comparison of two setups on the questions that both answered.

    Attributes:
        dataset: the data set's name.
        task: `qa`, `mc` or `long`.
        model: the model's name.
        attack: the attack.
        measure: `right`, or `hijacked` under attack. Long answers: the judge's score as a share of 100.
        setup: the one.
        against: the other.
        n: questions that both answered.
        alone: of how many the measure holds for `setup` alone; None where it is no yes or no.
        other_alone: of how many it holds for `against` alone.
        difference: mean of `setup` minus mean of `against`, with its paired 95% bootstrap interval.
        p: of the exact two-sided McNemar test that neither is better; None where the measure is no yes or no.
        p_holm: the same, corrected by Holm for all tests of the run.
    """

    dataset: str
    task: str
    model: str
    attack: AttackSpec
    measure: str
    setup: str
    against: str
    n: int
    alone: int | None
    other_alone: int | None
    difference: Interval
    p: float | None
    p_holm: float | None = None


def compare(rows: Iterable[Row]) -> tuple[Comparison, ...]:
    """Every two setups of a model on the same questions under the same attack; of more than four, each with the first.

    Vanilla RAG, where it was run, comes first. Questions that one of the two failed on are left out.

    Args:
        rows: of a run, one per key.
    """
    answered: dict[tuple[Any, ...], dict[str, dict[str, Row]]] = {}
    for row in rows:
        if row.get("error") is None:
            known = (row["dataset"], row["task"], row["model"], attack_of_row(row))
            setup = row["setup"] if row.get("top_k") is None else f"{row['setup']}\n{row['top_k']}"
            answered.setdefault(known, {}).setdefault(setup, {})[row["question_id"]] = row
    found = [c for known, setups in answered.items() for c in _of_one_attack(known, setups)]
    return _corrected(found)


def mcnemar(first: int, second: int) -> float:
    """The exact two-sided p-value that questions which only one of two gets right are split by a fair coin.

    Args:
        first: number that only the one gets right.
        second: number that only the other gets right.
    """
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


def _of_one_attack(known: tuple[Any, ...], setups: Mapping[str, Mapping[str, Row]]) -> Iterable[Comparison]:
    dataset, task, model, attack = known
    names = sorted(setups, key=lambda name: next(iter(setups[name].values()))["defense"] != "vanilla")
    plain = [name.partition("\n")[0] for name in names]
    label = {
        name: setup if plain.count(setup) == 1 else name.replace("\n", " k=")
        for name, setup in zip(names, plain, strict=True)
    }
    pairs = itertools.combinations(names, 2) if len(names) <= MOST_SETUPS else ((names[0], n) for n in names[1:])
    for against, setup in pairs:
        both = [q for q in setups[setup] if q in setups[against]]
        for measure, score in (("right", "correct"), *([] if attack.name == "none" else [("hijacked", "hijacked")])):
            scored = [(setups[setup][q]["scores"][score], setups[against][q]["scores"][score]) for q in both]
            values = [(float(a), float(b)) for a, b in scored if a is not None and b is not None]
            if values:
                about = (dataset, task, model, attack, measure, label[setup], label[against])
                yield Comparison(*about, *_measured(values))


def _measured(values: Sequence[tuple[float, float]]) -> tuple[int, int | None, int | None, Interval, float | None]:
    difference = bootstrap_mean([a - b for a, b in values], limits=DIFFERENCE)
    if not all(v in (0.0, 1.0) for pair in values for v in pair):
        return len(values), None, None, difference, None
    first, second = sum(a > b for a, b in values), sum(b > a for a, b in values)
    return len(values), first, second, difference, mcnemar(first, second)


def _corrected(found: Sequence[Comparison]) -> tuple[Comparison, ...]:
    tested = [c.p for c in found if c.p is not None]
    corrected = iter(holm(tested))
    return tuple(c if c.p is None else replace(c, p_holm=next(corrected)) for c in found)
