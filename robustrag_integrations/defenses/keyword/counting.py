"""Keyword counts, and the radius of the retained keywords (paper, Algorithm 1, lines 3-13)."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Protocol

from robustrag_integrations.defenses.agreement.tally import KeywordTally, votes_for
from robustrag_integrations.defenses.keyword.spans import KeywordSpan

if TYPE_CHECKING:
    from robustrag_integrations.defenses.agreement.linear_forms import Holding, TierVotes


class KeywordRule(Protocol):
    """A rule for keeping keywords, with its proof: `AbsoluteThreshold` or `RelativeThreshold`.

    A keyword is any string: all that matters is which groups say it.
    """

    @property
    def in_words(self) -> str:
        """The condition for keeping a keyword."""

    @property
    def to_keep_more(self) -> str:
        """The settings to change so that more is kept."""

    @property
    def to_keep_less(self) -> str:
        """The settings to change so that a few groups cannot decide."""

    def as_dict(self) -> dict[str, Any]:
        """The settings, JSON-safe."""

    def mu(self, answering: int, strongest: int) -> Fraction:
        """Return the threshold: the smallest number of votes that keeps a keyword.

        Args:
            answering: n, the votes of groups that did not abstain.
            strongest: the count of the keyword that most say.
        """

    def span(self, counts: Mapping[str, int], answering: int, corrupted: int) -> KeywordSpan:
        """Return the keywords that can be kept next to corrupted groups, from the counts over the untouched ones."""

    def radius(
        self,
        keyword_sets: Sequence[Collection[str] | None],
        retained: Collection[str],
        weights: Sequence[int] | None,
        idle: Collection[str] = (),
    ) -> int:
        """Return the largest r such that no replacement of groups with r votes together changes the retained keywords.

        Changes of `idle` keywords do not matter: they are part of a retained one.
        """

    def holding(
        self,
        keyword_sets: Sequence[Collection[str] | None],
        retained: Collection[str],
        votes: TierVotes,
        idle: Collection[str] = (),
    ) -> Holding:
        """Tell for each budget of the votes whether the retained keywords stay the same."""


def tally_keywords(
    keyword_sets: Sequence[Collection[str] | None],
    rule: KeywordRule,
    weights: Sequence[int] | None = None,
) -> KeywordTally:
    """Count unique keywords over the groups and keep the frequent ones (Algorithm 1, lines 8-13).

    Args:
        keyword_sets: per group the keywords of its response, None for an abstention.
        rule: the rule for keeping keywords.
        weights: per group how many votes it has, at least 1; None for one each.
    """
    counts = votes_for(keyword_sets, weights)
    voted = zip(keyword_sets, weights or [1] * len(keyword_sets), strict=True)
    answering = sum(votes for keywords, votes in voted if keywords is not None)
    mu = rule.mu(answering, max(counts.values(), default=0))
    needed = math.ceil(mu)  # counts are whole numbers, which are compared faster
    retained = tuple(sorted(w for w, c in counts.items() if c >= needed))
    return KeywordTally(counts, answering, mu, retained)


def keyword_radius(
    retained: Collection[str],
    keyword_sets: Sequence[Collection[str] | None],
    rule: KeywordRule,
    weights: Sequence[int] | None = None,
    idle: Collection[str] = (),
) -> int:
    """Return the largest r such that no replacement of groups with r votes together changes the retained keywords.

    Args:
        retained: the keywords that decide.
        keyword_sets: the groups' keywords, from which they were counted; groups that abstained can be replaced, too.
        rule: the rule for keeping keywords.
        weights: per group its votes; None for one each.
        idle: keywords that decide nothing.
    """
    return rule.radius(keyword_sets, retained, weights, idle)
