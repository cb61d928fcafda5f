"""Halves are rounded up, whatever their binary fraction is."""

from __future__ import annotations

import pytest

from robustrag_integrations._util.display import decimals


@pytest.mark.parametrize(
    ("value", "digits", "scale", "shown"),
    [
        (0.125, 0, 100, "13"),
        (2.5, 0, 1, "3"),
        (0.1 + 0.2, 2, 1, "0.30"),
        (-0.0001, 1, 1, "0.0"),
        (1e300, 2, 100, "1" + "0" * 302 + ".00"),
        (float("-inf"), 2, 1, "-inf"),
        (float("nan"), 0, 1, "nan"),
    ],
)
def test_halves_go_up(value: float, digits: int, scale: int, shown: str) -> None:
    assert decimals(value, digits, scale) == shown
