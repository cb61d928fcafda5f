"""Means with bootstrap confidence intervals, and exact ones for shares of successes.

A percentile bootstrap: resample the questions with replacement, take the mean of each resample, and cut off the same
share at both ends. It cannot see what a sample does not show: when all values are the same, every resample is too, and
the interval would shrink to a point however small the sample. There a bound takes its place that holds for any
distribution within known limits: for a rate of 0/n or n/n the exact interval of Clopper and Pearson.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec

LEVEL = 0.95
RESAMPLES = 2000
RATE = (0.0, 1.0)
SCORE = (0.0, 100.0)

_AT_ONCE = 1_000_000  # numbers in one block of resamples


def check_installed() -> None:
    """Raise now what the first interval would raise after a long run.

    Raises:
        ImportError: the extra `eval` is missing.
    """
    for name in ("pydantic", "scipy"):
        if find_spec(name) is None:
            raise ImportError(f"evaluations need {name}: pip install 'robustrag-integrations[eval]'")


@dataclass(frozen=True)
class Interval:
    """A mean and its confidence interval.

    Attributes:
        mean: of the sample; None when it is empty.
        low: the lower end; None where there is none.
        high: the upper end.
        n: number of values.
    """

    mean: float | None
    low: float | None
    high: float | None
    n: int


EMPTY = Interval(None, None, None, 0)


def bootstrap_mean(values: Sequence[float], *, limits: tuple[float, float] | None = None) -> Interval:
    """The mean of a sample with its confidence interval; the same values in the same order give the same one.

    Args:
        values: one per question.
        limits: the lowest and highest value there can be, for example `RATE`; None if there are none.

    Returns:
        For an empty sample `EMPTY`. For n equal values v within limits: a value other than v has a probability of at
        most 1 - 0.025^(1/n), and the mean lies accordingly between the limits; for a rate of 0 or 1 this is the exact
        two-sided interval (Clopper-Pearson). Without limits there is no interval for equal values.

    Raises:
        ValueError: a value is not finite or outside its limits.
    """
    least, most = limits or (-math.inf, math.inf)
    for value in values:
        if not (math.isfinite(value) and least <= value <= most):
            raise ValueError(f"the value {value!r} must be a number from {least:g} to {most:g}")
    if not values:
        return EMPTY
    if min(values) == max(values):
        return _of_equals(values[0], len(values), limits)
    import numpy as np

    mean = math.fsum(values) / len(values)
    if set(values) == {0.0, 1.0}:  # what resampling would come to is known: successes are binomial
        from scipy.stats import binom

        low, high = binom.ppf([(1 - LEVEL) / 2, (1 + LEVEL) / 2], len(values), mean) / len(values)
        return Interval(mean, float(low), float(high), len(values))
    from scipy.stats import bootstrap

    found = bootstrap(
        [values],
        np.mean,
        n_resamples=RESAMPLES,
        batch=max(_AT_ONCE // len(values), 1),
        confidence_level=LEVEL,
        method="percentile",
        rng=0,
    ).confidence_interval
    return Interval(mean, float(found.low), float(found.high), len(values))


def clopper_pearson(successes: int, count: int) -> Interval:
    """The share of successes among independent tries with its exact two-sided interval, whatever it is in truth.

    Raises:
        ValueError: `successes` is not from 0 to `count`.
    """
    if not 0 <= successes <= count:
        raise ValueError(f"successes={successes!r} must be from 0 to {count!r}")
    if not count:
        return EMPTY
    from scipy.stats import binomtest

    found = binomtest(successes, count).proportion_ci(LEVEL, method="exact")
    return Interval(successes / count, float(found.low), float(found.high), count)


def _of_equals(value: float, count: int, limits: tuple[float, float] | None) -> Interval:
    if limits is None:
        return Interval(value, None, None, count)
    rest = 1 - ((1 - LEVEL) / 2) ** (1 / count)
    least, most = limits
    return Interval(value, value + rest * (least - value), value + rest * (most - value), count)
