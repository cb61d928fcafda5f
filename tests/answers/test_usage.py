"""Tokens and money: sums that keep the unknown unknown, and prices."""

from __future__ import annotations

import math
from typing import Any

import pytest

from robustrag_integrations.answers.usage import (
    Prices,
    Spending,
    Usage,
    prices_of,
    together,
    tokens_in_words,
    told,
)


def test_what_one_call_does_not_tell_is_unknown_in_the_sum_and_never_0() -> None:
    calls = [Usage(100, 40, 5, 2), Usage(200, None, 7), Usage()]
    assert together(calls[:2]) == Usage(300, None, 12, None)
    assert together(calls) == Usage()
    assert told(calls) == Usage(300, 40, 12, 2)
    assert told([Usage()]) == Usage()
    assert together([]) == Usage(0, 0, 0, 0)


def test_prices_are_per_million_and_cached_tokens_have_their_own() -> None:
    prices = Prices(2.0, 10.0, 0.5)
    assert prices.of(Usage(1_000_000, 0, 100_000)) == pytest.approx(3.0)
    assert prices.of(Usage(1_000_000, 400_000, 0)) == pytest.approx(1.2 + 0.2)
    assert Prices(2.0, 10.0).of(Usage(1_000_000, 400_000, 0)) == pytest.approx(2.0)
    assert prices.of(Usage(1_000_000, None, 0)) == pytest.approx(2.0)  # at most
    assert prices.of(Usage(10, 99, 0)) == pytest.approx(5e-6)  # a server that says nonsense gives nothing back


@pytest.mark.parametrize("usage", [Usage(), Usage(5), Usage(None, None, 5)], ids=str)
def test_unknown_tokens_have_no_price(usage: Usage) -> None:
    assert Prices(2.0, 10.0).of(usage) is None


@pytest.mark.parametrize(
    "given",
    [{}, {"input": 1}, {"input": 1, "output": 2, "cache": 3}, [1, 2], {"input": -1, "output": 2}, None]
    + [{"input": bad, "output": 2} for bad in (math.nan, math.inf, True, "1", None)],
    ids=str,
)
def test_prices_that_make_no_sense_are_refused(given: Any) -> None:
    with pytest.raises(ValueError, match="price"):
        prices_of(given)


def test_words_say_what_is_not_known() -> None:
    whole = Spending(2, 1, 0, Usage(1200, 0, 30), Usage(1200, 0, 30))
    assert tokens_in_words(whole) == "1,200 in, 0 of them cached, 30 out"
    part = Spending(2, 1, 1, Usage(), Usage(600, None, 30))
    assert tokens_in_words(part) == "600 in, 30 out; at least, as 1 of 2 calls did not tell"
    silent = Spending(2, 1, 2)
    assert tokens_in_words(silent).startswith("not known")
