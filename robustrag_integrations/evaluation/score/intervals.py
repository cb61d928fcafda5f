"""Means with bootstrap confidence intervals, and exact ones for shares of successes.

A percentile bootstrap: resample the questions with replacement, take the mean of each resample, and cut off the same
share at both ends. It cannot see what a sample does not show: when all values are the same, every resample is too, and
the interval would shrink to a point however small the sample. There a bound takes its place that holds for any
distribution within known limits: for a rate of 0/n or n/n the exact interval of Clopper and Pearson. Each interval says
which of these it is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from robustrag_integrations.checks import check_at_least

LEVEL = 0.95
RESAMPLES = 2000
RATE = (0.0, 1.0)
SCORE = (0.0, 100.0)

_AT_ONCE = 1_000_000  # numbers in one block of resamples


@dataclass(frozen=True)
class Interval:
    """A mean and what it may be in truth.

    Attributes:
        mean: of the sample; None when it is empty.
        low: the lower end; None where there is none.
        high: the upper end.
        n: how many values.
        method: what made the ends: `bootstrap`, `exact` (Clopper-Pearson), `bound` (of equal values inside them);
            empty where there are none.
    """

    mean: float | None
    low: float | None
    high: float | None
    n: int
    method: str = field(default="", compare=False)

    def to_dict(self) -> dict[str, Any]:
        """The interval in JSON's types."""
        return {"mean": self.mean, "low": self.low, "high": self.high, "n": self.n, "method": self.method}


EMPTY = Interval(None, None, None, 0)


def bootstrap_mean(
    values: Sequence[float],
    *,
    limits: tuple[float, float] | None = None,
    level: float = LEVEL,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Interval:
    """The mean of a sample with its confidence interval.

    Args:
        values: one per question.
        limits: the lowest and highest value there can be, for example `RATE`; None if there are none.
        level: how sure, in (0, 1).
        resamples: how many resamples; at least 1.
        seed: of the resampling; the same values in the same order give the same interval.

    Returns:
        For an empty sample `EMPTY`. For n equal values v within limits: a value other than v has a probability of at
        most 1 - ((1 - level)/2)^(1/n), and the mean lies accordingly between the limits; for a rate of 0 or 1 this is
        the exact two-sided interval (Clopper-Pearson). Without limits there is no interval for equal values.

    Raises:
        ValueError: a value is not finite or outside its limits, or an invalid argument.
    """
    _check(values, limits, level, resamples)
    if not values:
        return EMPTY
    if min(values) == max(values):
        return _of_equals(values[0], len(values), limits, level)
    import numpy as np

    means = _resampled(np.asarray([values], dtype=float), resamples, seed)[0]
    low, high = np.quantile(means, [(1 - level) / 2, (1 + level) / 2])
    return Interval(math.fsum(values) / len(values), float(low), float(high), len(values), "bootstrap")


def bootstrap_ratio(
    pairs: Sequence[tuple[float, float]], *, level: float = LEVEL, resamples: int = RESAMPLES, seed: int = 0
) -> Interval:
    """The ratio of two means with its confidence interval; pairs are resampled together.

    Args:
        pairs: numerator and denominator of each question, for example seconds with and without a defence.
        level: how sure, in (0, 1).
        resamples: how many resamples; at least 1.
        seed: of the resampling.

    Returns:
        `EMPTY` for no pairs, or denominators that do not add up to more than 0. No interval for a single pair.

    Raises:
        ValueError: a value is negative or not finite, or an invalid argument.
    """
    flat = [value for pair in pairs for value in pair]
    _check(flat, (0.0, math.inf), level, resamples)
    below = math.fsum(d for _, d in pairs)
    if below <= 0:
        return EMPTY
    ratio = math.fsum(n for n, _ in pairs) / below
    if len(pairs) == 1:
        return Interval(ratio, None, None, 1)
    import numpy as np

    above, under = _resampled(np.asarray(pairs, dtype=float).T, resamples, seed)
    kept = under > 0  # a resample of nothing but zeros has no ratio
    low, high = np.quantile(above[kept] / under[kept], [(1 - level) / 2, (1 + level) / 2])
    return Interval(ratio, float(low), float(high), len(pairs), "bootstrap")


def clopper_pearson(successes: int, count: int, *, level: float = LEVEL) -> Interval:
    """The share of successes with its exact two-sided interval, whatever the share is in truth.

    Args:
        successes: how many; from 0 to `count`.
        count: of how many independent tries.
        level: how sure, in (0, 1).

    Raises:
        ValueError: an invalid argument.
    """
    if not (0 <= successes <= count and 0 < level < 1):
        raise ValueError(f"successes={successes!r} must be from 0 to {count!r}, and level={level!r} between 0 and 1")
    if not count:
        return EMPTY
    rest = (1 - level) / 2
    low = 0.0 if successes == 0 else _where(lambda p: _tail(successes, count, p) >= rest)
    high = 1.0 if successes == count else 1 - _where(lambda p: _tail(count - successes, count, p) >= rest)
    return Interval(successes / count, low, high, count, "exact")


def _tail(successes: int, count: int, share: float) -> float:
    """The probability of at least so many successes."""
    if share <= 0 or share >= 1:
        return float(share >= 1 or successes == 0)
    total = math.lgamma(count + 1)
    log, other = math.log(share), math.log1p(-share)
    return math.fsum(
        math.exp(total - math.lgamma(k + 1) - math.lgamma(count - k + 1) + k * log + (count - k) * other)
        for k in range(successes, count + 1)
    )


def _where(reached: Callable[[float], bool]) -> float:
    """The smallest share from which on something monotone holds, rounded down."""
    low, high = 0.0, 1.0
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (low, middle) if reached(middle) else (middle, high)
    return low


def _check(values: Sequence[float], limits: tuple[float, float] | None, level: float, resamples: int) -> None:
    if not 0 < level < 1:
        raise ValueError(f"level={level!r} must be between 0 and 1, for example 0.95")
    check_at_least(1, resamples=resamples)
    least, most = limits or (-math.inf, math.inf)
    for value in values:
        if not (math.isfinite(value) and least <= value <= most):
            raise ValueError(f"the value {value!r} must be a number from {least:g} to {most:g}")


def _of_equals(value: float, count: int, limits: tuple[float, float] | None, level: float) -> Interval:
    if limits is None:
        return Interval(value, None, None, count)
    rest = 1 - ((1 - level) / 2) ** (1 / count)
    least, most = limits
    method = "exact" if value in limits else "bound"
    return Interval(value, value + rest * (least - value), value + rest * (most - value), count, method)


def _resampled(samples: Any, resamples: int, seed: int) -> Any:
    """Means [rows, resamples] of the rows of an array [rows, n], all rows resampled alike."""
    import numpy as np

    count = samples.shape[1]
    step = max(_AT_ONCE // count, 1)
    blocks = [
        _times_drawn(count, min(step, resamples - start), seed, start // step) for start in range(0, resamples, step)
    ]
    return np.concatenate([samples @ block.T for block in blocks], axis=1) / count


@lru_cache(maxsize=16)
def _times_drawn(count: int, resamples: int, seed: int, block: int) -> Any:
    """How often each of `count` values is in each resample, [resamples, count]; samples of one size share it."""
    import numpy as np

    drawn = np.random.default_rng([seed, block]).integers(0, count, (resamples, count))
    times = np.zeros((resamples, count))
    np.add.at(times, (np.arange(resamples)[:, None], drawn), 1)
    return times
