"""Intervals hold the mean, cover the truth as often as they say, and stay honest about small and uniform samples."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from robustrag_integrations.evaluation.score.summary import EMPTY, RATE, bootstrap_mean


@settings(max_examples=60, deadline=None)
@given(st.lists(st.floats(0, 1), max_size=30))
def test_the_mean_lies_in_its_interval_and_the_interval_within_the_limits(values: list[float]) -> None:
    found = bootstrap_mean(values, limits=RATE)
    assert found.n == len(values)
    if not values:
        assert found == EMPTY
        return
    assert found.mean is not None
    assert found.low is not None
    assert found.high is not None
    assert math.isclose(found.mean, sum(values) / len(values), abs_tol=1e-12)
    assert -1e-12 <= found.low <= found.mean + 1e-9
    assert found.mean - 1e-9 <= found.high <= 1 + 1e-12


@pytest.mark.parametrize(("value", "ends"), [(1.0, (0.692, 1.0)), (0.0, (0.0, 0.308)), (0.5, (0.346, 0.654))])
def test_equal_values_do_not_pass_for_certainty(value: float, ends: tuple[float, float]) -> None:
    found = bootstrap_mean([value] * 10, limits=RATE)
    assert (found.low, found.high) == pytest.approx(ends, abs=0.001)
    assert found.mean == value
