"""Halves are rounded up, whatever their binary fraction is."""

from __future__ import annotations

import pytest

from robustrag_integrations._util.display import decimals, significant


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


@pytest.mark.parametrize(
    ("value", "figures", "shown"),
    [
        (0.0125, 2, "0.013"),
        (0.30000000000000004, 3, "0.3"),
        (9.995, 3, "10"),
        (12345.6, 3, "12346"),
        (0.00000125, 2, "0.0000013"),
        (0, 3, "0"),
        (-2.675, 3, "-2.68"),
        (100, 1, "100"),
    ],
)
def test_significant_digits_are_rounded_up_and_have_no_exponent(value: float, figures: int, shown: str) -> None:
    assert significant(value, figures) == shown
