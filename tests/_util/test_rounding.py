"""Halves are rounded up, whatever their binary fraction is."""

from __future__ import annotations

import pytest

from robustrag_integrations._util.display import decimals


@pytest.mark.parametrize(
    ("value", "digits", "scale", "shown"),
    [
        (0.125, 0, 100, "13"),
        (0.0005, 1, 100, "0.1"),
        (0.3345, 1, 100, "33.5"),
        (2.5, 0, 1, "3"),
        (0.1 + 0.2, 2, 1, "0.30"),
        (57 / 200, 0, 100, "29"),
        (-0.125, 0, 100, "-13"),
        (-0.0001, 1, 1, "0.0"),
        (0, 1, 1, "0.0"),
        (1e300, 2, 100, "1" + "0" * 302 + ".00"),
        (5e-324, 3, 1, "0.000"),
        (float("-inf"), 2, 1, "-inf"),
        (float("nan"), 0, 1, "nan"),
    ],
)
def test_halves_go_up(value: float, digits: int, scale: int, shown: str) -> None:
    assert decimals(value, digits, scale) == shown
