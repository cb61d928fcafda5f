"""The paper's threshold: min(alpha n, beta) of n answering groups (Algorithm 1, line 12)."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from robustrag_integrations._util.subset_sums import bits, smallest_from, subset_sums
from robustrag_integrations.defenses.agreement.numbers import among_counts, exact_number
from robustrag_integrations.defenses.keyword.spans import KeywordSpan, Reach

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from robustrag_integrations.defenses.agreement.linear_forms import Holding, TierVotes

_NEVER = 1 << 62


@dataclass(frozen=True)
class AbsoluteThreshold:
    """The threshold mu(n) = min(alpha * n, beta), compared exactly.

    `alpha` is held as a fraction of the decimal number that was written, so that 0.3 * 10 is 3 and no keyword is lost
    to a rounding error.
    """

    alpha: Fraction
    beta: int

    @classmethod
    def of(cls, alpha: float | Fraction, beta: int) -> AbsoluteThreshold:
        """Build the threshold from checked settings."""
        return cls(exact_number(alpha), beta)

    @property
    def in_words(self) -> str:
        """The condition for keeping a keyword."""
        return f"{float(self.alpha):g} of those that answer, {self.beta} at most"

    @property
    def to_keep_more(self) -> str:
        """The settings to change so that more is kept."""
        return "lower alpha= or beta="

    @property
    def to_keep_less(self) -> str:
        """The settings to change so that a few groups cannot decide."""
        return "raise alpha= and beta="

    def as_dict(self) -> dict[str, Any]:
        """The settings, JSON-safe."""
        return {"threshold": "absolute", "alpha": str(self.alpha), "beta": self.beta}

    def mu(self, answering: int, strongest: int) -> Fraction:
        """Return mu(n); the strongest keyword's count does not enter."""
        share, whole = self.alpha.numerator, self.alpha.denominator
        return Fraction(min(share * answering, self.beta * whole), whole)

    def needed(self, answering: int) -> int:
        """Return the smallest count that reaches mu(n): counts are whole numbers, so c >= mu means c >= needed."""
        return min(-(-self.alpha.numerator * answering // self.alpha.denominator), self.beta)

    def span(self, counts: Mapping[str, int], answering: int, corrupted: int) -> KeywordSpan:
        """Sort the untouched groups' keywords by what the attacker can do to them (Algorithm 3, lines 1-14).

        With e of m' corrupted groups answering, a keyword said c(w) times stays if c(w) >= mu(n + e) and can stay if
        c(w) + e >= mu(n + e). Both sets grow apart with e, so that e = m' covers all others.
        """
        mu = self.mu(answering + corrupted, 0)
        ranked = sorted(counts, key=lambda w: (-counts[w], w))
        reach = Reach(
            tuple(sorted(w for w in ranked if counts[w] >= mu)),
            tuple(w for w in ranked if mu > counts[w] >= mu - corrupted),
        )
        return KeywordSpan((reach,), corrupted > 0 and corrupted >= mu, mu, dict(counts))

    def radius(
        self,
        keyword_sets: Sequence[Collection[str] | None],
        retained: Collection[str],
        weights: Sequence[int] | None,
        idle: Collection[str] = (),
    ) -> int:
        """Return the largest r such that no replacement of groups with r votes together changes the retained keywords.

        Of the replaced votes, z were of groups that had abstained; then n + z answer, since that all attackers answer
        is their best choice: against a retained keyword mu grows with n, and for a new one c + e - mu(n + e) grows with
        e because alpha <= 1. A retained keyword w falls if s of the votes for it are replaced and c(w) - s < mu(n + z).
        Another one rises, with t votes of groups that answered without it, if c(w) + t + z >= mu(n + z); for a word
        that nobody says c is 0. Each keyword meets its own worst groups. Which s, t and z there are depends on the
        weights: all sums are looked at, once for keywords that groups of the same weights say.
        """
        votes = list(weights or [1] * len(keyword_sets))
        if idle:
            keyword_sets = [None if said is None else frozenset(said).difference(idle) for said in keyword_sets]
        if not votes:
            return 0
        spoken = [i for i, keywords in enumerate(keyword_sets) if keywords is not None]
        answering = sum(votes[i] for i in spoken)
        silent = subset_sums(votes[i] for i, keywords in enumerate(keyword_sets) if keywords is None)
        needs = [(z, self.needed(answering + z)) for z in bits(silent)]
        cheapest = _cheapest_rise(0, subset_sums(votes[i] for i in spoken), needs, least=1)
        for sayers, kept in _patterns(keyword_sets, votes, frozenset(retained)):
            count = sum(sayers)
            if kept:
                cheapest = min(cheapest, _cheapest_fall(count, subset_sums(sayers), needs))
            else:
                others = Counter(votes[i] for i in spoken)
                others.subtract(sayers)
                cheapest = min(cheapest, _cheapest_rise(count, subset_sums(others.elements()), needs))
        return min(cheapest, sum(votes) + 1) - 1

    def holding(
        self,
        keyword_sets: Sequence[Collection[str] | None],
        retained: Collection[str],
        votes: TierVotes,
        idle: Collection[str] = (),
    ) -> Holding:
        """Tell for each budget of the votes whether the retained keywords stay the same.

        A retained w stays where c'(w) >= alpha n' after every attack, or c'(w) >= beta after every one; another one
        stays away where c'(w) < alpha n' and c'(w) < beta after every one. All four are sums over groups
        (`linear_forms.py`). Where the groups of a tier have equally many votes, one attack is the worst against both
        conditions for w, and the proof is exact; else it may prove less than is true.
        """
        import numpy as np

        sayers: dict[str, list[int]] = {}
        for group, keywords in enumerate(keyword_sets):
            for keyword in frozenset(keywords or ()).difference(idle):
                sayers.setdefault(keyword, []).append(group)
        kept = {tuple(sayers[keyword]) for keyword in retained}
        others = {tuple(said_by) for keyword, said_by in sayers.items() if keyword not in retained}
        share = among_counts(self.alpha, max(1, votes.total))
        p, q = share.numerator, share.denominator
        answering = np.array([keywords is not None for keywords in keyword_sets], np.int64)
        stays, away = (_rows(found, len(keyword_sets)) for found in (kept, {*others, ()}))
        of_share = votes.leasts(q * stays - p * answering, -p, votes.last) >= 0
        of_whole = votes.leasts(stays, 0, votes.last) >= self.beta
        below_share = votes.leasts(p * answering - q * away, p - q, votes.last) > 0
        below_whole = votes.leasts(-away, -1, votes.last) > -self.beta
        holds: Holding = np.all(np.concatenate([of_share | of_whole, below_share & below_whole]), axis=0)
        holds[0] = True
        return holds


def _rows(sayers: Collection[tuple[int, ...]], groups: int) -> NDArray[np.int64]:
    """Return [keywords, groups]: 1 for each group that says the keyword."""
    import numpy as np

    rows = np.zeros((len(sayers), groups), np.int64)
    for row, said_by in zip(rows, sayers, strict=True):
        row[list(said_by)] = 1
    return rows


def _patterns(
    keyword_sets: Sequence[Collection[str] | None], votes: Sequence[int], retained: Collection[str]
) -> set[tuple[tuple[int, ...], bool]]:
    """The weights of the groups that say a keyword, and whether it is retained; each once."""
    alike: defaultdict[frozenset[str], list[int]] = defaultdict(list)
    for keywords, weight in zip(keyword_sets, votes, strict=True):
        alike[frozenset(keywords or ())].append(weight)
    sayers: defaultdict[str, list[int]] = defaultdict(list)
    for said, weights in alike.items():
        for keyword in said:
            sayers[keyword] += weights
    return {(tuple(sorted(found)), keyword in retained) for keyword, found in sayers.items()}


def _cheapest_fall(count: int, sums: int, needs: Sequence[tuple[int, int]]) -> int:
    """The fewest votes whose replacement takes a retained keyword below the threshold."""
    found = (z + s for z, needed in needs if (s := smallest_from(sums, count - needed + 1)) is not None)
    return min((cost for cost in found if cost), default=_NEVER)


def _cheapest_rise(count: int, sums: int, needs: Sequence[tuple[int, int]], least: int = 0) -> int:
    """The fewest votes whose replacement takes a keyword that is not retained to the threshold."""
    found = (z + t for z, needed in needs if (t := smallest_from(sums, max(needed - count, least) - z)) is not None)
    return min((cost for cost in found if cost), default=_NEVER)
