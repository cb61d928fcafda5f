"""Choosing enough sources: compared with the definition on random rankings, and its rounds of growth."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from robustrag_integrations._util.steps import driven
from robustrag_integrations.grouping.quotas import SourceQuota, choose, gather

RANKINGS = st.lists(st.integers(0, 8), max_size=40)


@given(RANKINGS, st.integers(1, 6), st.integers(1, 4))
def test_the_best_few_of_each_of_the_best_sources_are_chosen_in_order(
    places: list[int], sources: int, per_origin: int
) -> None:
    best = list(dict.fromkeys(places))[:sources]
    wanted = {rank for place in best for rank in [i for i, p in enumerate(places) if p == place][:per_origin]}
    assert choose(places, sources, per_origin) == sorted(wanted)


def places_of(items: Sequence[int]) -> Sequence[int]:
    return items


def rounds(corpus: list[int], quota: SourceQuota, *, exact: bool = True) -> tuple[list[int], object]:
    asked: list[int] = []

    def fetch(k: int) -> list[int]:
        asked.append(k)
        return corpus[:k]

    return asked, driven(gather(quota, places_of, exact=exact), fetch)


def test_more_is_fetched_only_while_sources_are_missing() -> None:
    asked, found = rounds([0] * 100 + [1, 2], SourceQuota(3, 2))
    assert asked == [12, 48, 192]
    assert found == ([0, 0, 1, 2], None)
    assert rounds([0, 1, 2], SourceQuota(3, 2))[0] == [12]


def test_fewer_than_asked_end_the_search_only_where_they_mean_the_end() -> None:
    assert rounds([0, 1], SourceQuota(3, 1))[0] == [6]
    assert rounds([0, 1], SourceQuota(3, 1, 100), exact=False)[0] == [6, 24, 96, 100]


@pytest.mark.parametrize("wrong", [{"sources": 0}, {"per_origin": True}, {"max_passages": 9, "sources": 10}])
def test_a_quota_that_cannot_be_met_is_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        SourceQuota(**wrong)
