"""Keyword counts over the groups, for reports and statuses."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True)
class KeywordTally:
    """Keyword counts over the answering groups.

    Attributes:
        counts: c(w), how many responses contain keyword w.
        answering: n, how many groups did not abstain.
        mu: the threshold: the least count of what is retained.
        retained: the keywords that reach it, sorted.
    """

    counts: dict[str, int]
    answering: int
    mu: Fraction
    retained: tuple[str, ...]


def votes_for(said: Sequence[Collection[str] | None], weights: Sequence[int] | None = None) -> dict[str, int]:
    """Return c(w), the votes of each keyword. A set that several groups share is gone through once.

    Args:
        said: per group its keywords, None for an abstention.
        weights: per group how many votes it has; None for one each.
    """
    alike: dict[frozenset[str], int] = {}
    for keywords, votes in zip(said, weights or [1] * len(said), strict=True):
        if keywords:
            keywords = frozenset(keywords)
            alike[keywords] = alike.get(keywords, 0) + votes
    counts: dict[str, int] = {}
    for keywords, votes in alike.items():
        for keyword in keywords:
            counts[keyword] = counts.get(keyword, 0) + votes
    return counts
