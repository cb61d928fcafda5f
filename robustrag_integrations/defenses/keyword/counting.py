"""Counting keywords, and the radius of what was retained (paper, Algorithm 1, lines 3-13)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from fractions import Fraction

from robustrag_integrations.checks import is_whole_number


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


@dataclass(frozen=True)
class KeywordTally:
    """Keyword counts over the answering groups.

    Attributes:
        counts: c(w), how many responses contain keyword w.
        answering: n, how many groups did not abstain.
        mu: the threshold min(alpha * n, beta).
        retained: the keywords with c(w) >= mu, sorted.
    """

    counts: dict[str, int]
    answering: int
    mu: Fraction
    retained: tuple[str, ...]


def tally_keywords(keyword_sets: Sequence[Collection[str] | None], threshold: KeywordThreshold) -> KeywordTally:
    """Count unique keywords over groups and keep the frequent ones (Algorithm 1, lines 8-13).

    Args:
        keyword_sets: per group the keywords of its response, None for an abstention.
        threshold: alpha and beta.
    """
    answering = [frozenset(keywords) for keywords in keyword_sets if keywords is not None]
    counts = Counter(keyword for keywords in answering for keyword in keywords)
    needed = threshold.needed(len(answering))
    retained = tuple(sorted(w for w, c in counts.items() if c >= needed))
    return KeywordTally(dict(counts), len(answering), threshold.at(len(answering)), retained)


def keyword_radius(tally: KeywordTally, threshold: KeywordThreshold, group_count: int) -> int:
    """The largest r such that no replacement of any r groups changes the retained keywords.

    Args:
        tally: the observed counts.
        threshold: alpha and beta.
        group_count: m, all groups; those that abstained can be replaced too.
    """
    retained = frozenset(tally.retained)
    weakest = min((tally.counts[w] for w in retained), default=2 * group_count)  # out of reach: nothing to lose
    strongest = max((c for w, c in tally.counts.items() if w not in retained), default=0)
    radius = 0
    while radius < group_count and _retained_is_fixed(
        tally.answering, weakest, strongest, threshold, group_count, radius + 1
    ):
        radius += 1
    return radius


def _retained_is_fixed(
    n: int, weakest: int, strongest: int, threshold: KeywordThreshold, group_count: int, r: int
) -> bool:
    """Whether the retained set survives every substitution(r).

    Of the r replaced groups, s had answered. Over all such sets, the benign count of w falls at most to c(w) - s and
    at least by s - (n - c(w)); each keyword meets its own worst set, and since all must hold for all sets, the
    quantifiers swap and no set needs to be enumerated. Both bounds grow with c(w), so that the weakest retained keyword
    and the strongest other one stand for all. That all r attackers answer is their best choice: against a retained
    keyword mu grows with n, and for a new one c + e - mu(n + e) grows with e because alpha <= 1.
    """
    for s in range(max(0, r - (group_count - n)), min(r, n) + 1):
        needed = threshold.needed(n - s + r)
        if s == n or r >= needed:  # no benign group is left to answer, or the attackers alone reach the threshold
            return False
        if weakest - s < needed or min(strongest, n - s) + r >= needed:
            return False
    return True
