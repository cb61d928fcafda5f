"""Means with bootstrap confidence intervals, and exact ones for shares of successes.

A percentile bootstrap shrinks to a point where all values are the same, however few. There a bound takes its place that
holds for any distribution within known limits: for a rate of 0/n or n/n the exact interval of Clopper and Pearson.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec

from robustrag_integrations._util.errors import missing

LEVEL = 0.95
RESAMPLES = 2000
RATE = (0.0, 1.0)
SCORE = (0.0, 100.0)


def check_installed() -> None:
    """Raise now what the first interval would raise after a long run."""
    if find_spec("scipy") is None:
        raise missing("evaluations need scipy", "eval")


@dataclass(frozen=True)
class Interval:
    """A mean of n values and its confidence interval; None where there is none."""

    mean: float | None
    low: float | None
    high: float | None
    n: int


EMPTY = Interval(None, None, None, 0)


def bootstrap_mean(values: Sequence[float], limits: tuple[float, float] = RATE) -> Interval:
    """The mean of a sample with its confidence interval; the same values in the same order give the same one.

    For n equal values v within limits (the lowest and highest value there can be): a value other than v has a
    probability of at most 1 - 0.025^(1/n), and the mean lies accordingly between the limits.
    """
    if not values:
        return EMPTY
    count, first = len(values), values[0]
    if min(values) == max(values):
        rest = 1 - ((1 - LEVEL) / 2) ** (1 / count)
        low, high = (first + rest * (limit - first) for limit in limits)
        return Interval(first, low, high, count)
    mean = math.fsum(values) / count
    if set(values) == {0.0, 1.0}:  # what resampling would come to is known: successes are binomial
        from scipy.stats import binom

        low, high = binom.ppf([(1 - LEVEL) / 2, (1 + LEVEL) / 2], count, mean) / count
        return Interval(mean, float(low), float(high), count)
    import numpy as np
    from scipy.stats import bootstrap

    batch = max(1_000_000 // count, 1)
    found = bootstrap([values], np.mean, n_resamples=RESAMPLES, batch=batch, method="percentile", rng=0)
    return Interval(mean, float(found.confidence_interval.low), float(found.confidence_interval.high), count)


def clopper_pearson(successes: int, count: int) -> Interval:
    """The share of successes among independent tries with its exact two-sided interval, whatever it is in truth."""
    if not count:
        return EMPTY
    from scipy.stats import binomtest

    found = binomtest(successes, count).proportion_ci(LEVEL, method="exact")
    return Interval(successes / count, float(found.low), float(found.high), count)
