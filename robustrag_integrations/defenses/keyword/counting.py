"""Counting keywords, and the radius of what was retained (paper, Algorithm 1, lines 3-13)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from fractions import Fraction

from robustrag_integrations.checks import is_whole_number
from robustrag_integrations.defenses.agreement.tally import KeywordTally
from robustrag_integrations.subset_sums import bits, smallest_from, subset_sums

_NEVER = 1 << 62


@dataclass(frozen=True)
class KeywordThreshold:
    """mu(n) = min(alpha * n, beta), compared exactly.

    `alpha` is held as a fraction of the decimal number that was written, so that 0.3 * 10 is 3 and no keyword is lost
    to a rounding error.
    """

    alpha: Fraction
    beta: int

    @classmethod
    def of(cls, alpha: float | Fraction, beta: int) -> KeywordThreshold:
        """From user settings.

        Raises:
            ValueError: alpha is outside [0, 1], or beta is not a whole number of at least 1.
        """
        try:
            exact = alpha if isinstance(alpha, Fraction) else Fraction(str(alpha))
        except (ValueError, ZeroDivisionError):
            raise ValueError(f"alpha={alpha!r} must be a number in [0, 1]") from None
        if not 0 <= exact <= 1:
            raise ValueError(f"alpha={alpha!r} must lie in [0, 1]: it is the share of answering groups that must agree")
        if not is_whole_number(beta, 1):
            raise ValueError(f"beta={beta!r} must be a whole number of at least 1: how many groups must agree at most")
        return cls(exact, beta)

    def at(self, n: int) -> Fraction:
        """mu for n answering groups."""
        return min(self.alpha * n, Fraction(self.beta))

    def needed(self, n: int) -> int:
        """The smallest count that reaches mu(n), exactly: counts are whole numbers, so c >= mu means c >= needed."""
        return min(-(-self.alpha.numerator * n // self.alpha.denominator), self.beta)


def tally_keywords(
    keyword_sets: Sequence[Collection[str] | None],
    threshold: KeywordThreshold,
    weights: Sequence[int] | None = None,
) -> KeywordTally:
    """Count unique keywords over groups and keep the frequent ones (Algorithm 1, lines 8-13).

    Args:
        keyword_sets: per group the keywords of its response, None for an abstention.
        threshold: alpha and beta.
        weights: per group how many votes it has, at least 1; None for one each.
    """
    counts: Counter[str] = Counter()
    answering = 0
    for keywords, weight in zip(keyword_sets, weights or [1] * len(keyword_sets), strict=True):
        if keywords is not None:
            answering += weight
            for keyword in frozenset(keywords):
                counts[keyword] += weight
    needed = threshold.needed(answering)
    retained = tuple(sorted(w for w, c in counts.items() if c >= needed))
    return KeywordTally(dict(counts), answering, threshold.at(answering), retained)


def keyword_radius(
    tally: KeywordTally,
    keyword_sets: Sequence[Collection[str] | None],
    threshold: KeywordThreshold,
    weights: Sequence[int] | None = None,
) -> int:
    """The largest r such that no replacement of groups with r votes together changes the retained keywords.

    Of the replaced votes, z were of groups that had abstained; then n + z answer, since that all attackers answer is
    their best choice: against a retained keyword mu grows with n, and for a new one c + e - mu(n + e) grows with e
    because alpha <= 1. A retained keyword w falls if s of the votes for it are replaced and c(w) - s < mu(n + z).
    Another one rises, with t votes of groups that answered without it, if c(w) + t + z >= mu(n + z); for a word that
    nobody says c is 0. Each keyword meets its own worst groups. Which s, t and z there are depends on the weights: all
    sums are looked at, once for keywords that groups of the same weights say.

    Args:
        tally: the observed counts.
        keyword_sets: what they were counted from; groups that abstained can be replaced too.
        threshold: alpha and beta.
        weights: per group its votes; None for one each.
    """
    votes = list(weights or [1] * len(keyword_sets))
    if not votes:
        return 0
    retained = frozenset(tally.retained)
    spoken = [i for i, keywords in enumerate(keyword_sets) if keywords is not None]
    needs = [(z, threshold.needed(tally.answering + z)) for z in bits(_sums(votes, set(range(len(votes))) - {*spoken}))]
    cheapest = _cheapest_rise(0, subset_sums(votes[i] for i in spoken), needs, least=1)
    for sayers, kept in _patterns(keyword_sets, votes, retained):
        count = sum(sayers)
        if kept:
            cheapest = min(cheapest, _cheapest_fall(count, subset_sums(sayers), needs))
        else:
            others = Counter(votes[i] for i in spoken)
            others.subtract(sayers)
            cheapest = min(cheapest, _cheapest_rise(count, subset_sums(others.elements()), needs))
    return min(cheapest, sum(votes) + 1) - 1


def _sums(votes: Sequence[int], places: Collection[int]) -> int:
    return subset_sums(votes[place] for place in places)


def _patterns(
    keyword_sets: Sequence[Collection[str] | None], votes: Sequence[int], retained: Collection[str]
) -> set[tuple[tuple[int, ...], bool]]:
    """The weights of the groups that say a keyword, and whether it is retained; each once."""
    sayers: dict[str, list[int]] = {}
    for keywords, weight in zip(keyword_sets, votes, strict=True):
        for keyword in frozenset(keywords or ()):
            sayers.setdefault(keyword, []).append(weight)
    return {(tuple(sorted(found)), keyword in retained) for keyword, found in sayers.items()}


def _cheapest_fall(count: int, sums: int, needs: Sequence[tuple[int, int]]) -> int:
    """The fewest votes whose replacement takes a retained keyword below the threshold."""
    found = (z + s for z, needed in needs if (s := smallest_from(sums, count - needed + 1)) is not None)
    return min((cost for cost in found if cost), default=_NEVER)


def _cheapest_rise(count: int, sums: int, needs: Sequence[tuple[int, int]], least: int = 0) -> int:
    """The fewest votes whose replacement takes a keyword that is not retained to the threshold."""
    found = (z + t for z, needed in needs if (t := smallest_from(sums, max(needed - count, least) - z)) is not None)
    return min((cost for cost in found if cost), default=_NEVER)
