"""Paired tests against counts by hand and against all ways that coins can fall."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from benchmarks.compare.paired import compare, holm, mcnemar
from tests.evaluation.rows import failed, row


@pytest.mark.parametrize(("first", "second"), [(0, 0), (1, 0), (0, 5), (2, 7), (3, 3), (1, 9)])
def test_the_p_value_is_the_share_of_coins_at_least_as_one_sided(first: int, second: int) -> None:
    count, gap = first + second, abs(first - second)
    falls = [sum(coins) for coins in itertools.product((0, 1), repeat=count)]
    extreme = sum(abs(2 * heads - count) >= gap for heads in falls) / len(falls)
    assert mcnemar(first, second) == mcnemar(second, first) == pytest.approx(extreme)


def test_holm_is_its_textbook_example_and_never_smaller_than_the_tests() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.9, 0.8]) == [1.0, 1.0]
    assert holm([]) == []


def rows_of(setup: str, right: list[int], **more: Any) -> list[dict[str, Any]]:
    return [row(i, setup=setup, scores={"correct": float(r)}, **more) for i, r in enumerate(right)]


def test_setups_are_compared_on_the_questions_that_both_answered_vanilla_first() -> None:
    rows = rows_of("keyword", [1, 1, 1, 1, 1, 0]) + rows_of("vanilla", [0, 0, 1, 0, 0, 1, 1], method="vanilla")
    rows += [failed(9, setup="keyword"), row(9, setup="vanilla", method="vanilla")]
    [found] = compare(rows)
    assert (found.setup, found.against, found.measure, found.n) == ("keyword", "vanilla", "right", 6)
    assert (found.alone, found.other_alone) == (4, 1)
    assert found.difference.mean == pytest.approx(0.5)
    assert found.difference.low is not None
    assert found.difference.low < 0.5
    assert found.p == found.p_holm == pytest.approx(2 * 6 / 32)
