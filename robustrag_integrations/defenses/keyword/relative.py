"""The threshold relative to the strongest keyword: more than a share of its votes."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from robustrag_integrations.defenses.agreement.numbers import exact_number
from robustrag_integrations.defenses.keyword.spans import KeywordSpan, Reach

if TYPE_CHECKING:
    from robustrag_integrations.defenses.agreement.linear_forms import Holding, TierVotes, Votes
    from robustrag_integrations.defenses.keyword.relative_radius import RelativeRadius


@dataclass(frozen=True)
class RelativeThreshold:
    """A keyword w is kept if c(w) > share * M and c(w) >= min_support, M being the strongest keyword's count.

    Compared exactly, in whole numbers: with share p/q, q c(w) > p M.
    """

    share: Fraction
    min_support: int

    @classmethod
    def of(cls, share: float | Fraction, min_support: int) -> RelativeThreshold:
        """Build the threshold from checked settings."""
        return cls(exact_number(share), min_support)

    @property
    def in_words(self) -> str:
        """The condition for keeping a keyword."""
        return f"more than {float(self.share):g} of the strongest keyword, {self.min_support} at least"

    @property
    def to_keep_more(self) -> str:
        """The settings to change so that more is kept: the strongest keyword always reaches its own share."""
        return "lower min_support="

    @property
    def to_keep_less(self) -> str:
        """The settings to change so that a few groups cannot decide."""
        return "raise share= or min_support="

    def as_dict(self) -> dict[str, Any]:
        """The settings, JSON-safe."""
        return {"threshold": "relative", "share": str(self.share), "min_support": self.min_support}

    def mu(self, answering: int, strongest: int) -> Fraction:
        """Return the smallest count that is kept; the number of answering groups does not enter."""
        return Fraction(max(strongest * self.share.numerator // self.share.denominator + 1, self.min_support))

    def span(self, counts: Mapping[str, int], answering: int, corrupted: int) -> KeywordSpan:
        """Sort the untouched groups' keywords by what the attacker can do to them.

        Corrupted groups may add 0 to m' to each count, whatever they add to the others, and so raise the strongest's
        count from M0 to anything up to M0 + m'. Next to a count M of the strongest, w is kept without them if
        q c(w) > p M, and with them if q (c(w) + m') > p M. Where M is more than M0, some word was raised to it, and is
        kept. A word that no untouched group says is kept if m' of them are more than p/q of M0.
        """
        strongest = max(counts.values(), default=0)
        mu = self.mu(answering, strongest)
        ranked = sorted(counts, key=lambda w: (-counts[w], w))
        reaches = [self._reach(counts, ranked, strongest + added, corrupted) for added in range(corrupted + 1)]
        possible = tuple(reach for reach in reaches if reach.allows(reach.contested))
        return KeywordSpan(possible, corrupted > 0 and corrupted >= mu, mu, dict(counts))

    def _reach(self, counts: Mapping[str, int], ranked: Sequence[str], strongest: int, corrupted: int) -> Reach:
        """Return the keywords that can be kept if the strongest one has this count."""
        needed = self.mu(0, strongest)
        reached = frozenset(w for w in ranked if counts[w] + corrupted >= strongest)
        raised = strongest > max(counts.values(), default=0)
        return Reach(
            tuple(sorted(w for w in ranked if counts[w] >= needed)),
            tuple(w for w in ranked if counts[w] < needed <= min(counts[w] + corrupted, strongest)),
            reached if raised and strongest >= self.min_support else None,
        )

    def radius(
        self,
        keyword_sets: Sequence[Collection[str] | None],
        retained: Collection[str],
        weights: Sequence[int] | None,
        idle: Collection[str] = (),
    ) -> int:
        """Return the largest r such that no replacement of groups with r votes in all changes the retained keywords."""
        from robustrag_integrations.defenses.agreement.linear_forms import Votes

        return self._proof(Votes(len(keyword_sets), weights), keyword_sets, retained, idle).radius()

    def holding(
        self,
        keyword_sets: Sequence[Collection[str] | None],
        retained: Collection[str],
        votes: TierVotes,
        idle: Collection[str] = (),
    ) -> Holding:
        """Tell for each budget of the votes whether the retained keywords stay the same."""
        return self._proof(votes, keyword_sets, retained, idle).holding(votes.last)

    def _proof(
        self,
        votes: Votes,
        keyword_sets: Sequence[Collection[str] | None],
        retained: Collection[str],
        idle: Collection[str],
    ) -> RelativeRadius:
        from robustrag_integrations.defenses.keyword.relative_radius import RelativeRadius

        return RelativeRadius(keyword_sets, retained, self.share, self.min_support, votes, idle)
