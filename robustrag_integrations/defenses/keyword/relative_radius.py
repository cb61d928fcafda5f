"""The radius of keywords retained under a threshold relative to the strongest one."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from robustrag_integrations.defenses.agreement.linear_forms import Holding, Row, Votes
from robustrag_integrations.defenses.agreement.numbers import among_counts


class RelativeRadius:
    """Proof that the retained keywords stay the same under substitution(r).

    With share p/q, a retained w stays if for every other u, one that nobody has said included, q c'(w) > p c'(u) after
    the attack, and c'(w) >= min_support. Another one, e, stays away if c'(e) < min_support, or if p c'(u) >= q c'(e)
    for some u. The first condition is necessary, too; the second one looks for one u that stands against every attack,
    where it would be enough to have another one against each.

    Args:
        keyword_sets: per group its keywords; None for one that abstained or failed, which can be replaced, too.
        retained: the retained keywords.
        share: p/q.
        min_support: the smallest count that is retained.
        votes: the groups' votes; where they are `TierVotes`, r stands for a budget.
        idle: keywords of which it does not matter whether they are retained; they count for the others all the same.
    """

    def __init__(
        self,
        keyword_sets: Sequence[Collection[str] | None],
        retained: Collection[str],
        share: Fraction,
        min_support: int,
        votes: Votes,
        idle: Collection[str] = (),
    ) -> None:
        self._votes = votes
        exact = among_counts(share, max(1, self._votes.total))
        self._p, self._q, self._min_support = exact.numerator, exact.denominator, min_support
        sayers: dict[str, list[int]] = {}
        for group, keywords in enumerate(keyword_sets):
            for keyword in frozenset(keywords or ()):
                sayers.setdefault(keyword, []).append(group)
        owners = Counter(map(tuple, sayers.values()))
        self._rows = np.zeros((len(owners) + 1, len(keyword_sets)), np.int64)  # the last one: nobody has said it
        for row, said_by in zip(self._rows, owners, strict=False):
            row[list(said_by)] = 1
        self._alone = [*(count == 1 for count in owners.values()), False]
        kept = {tuple(sayers[keyword]) for keyword in retained}
        watched = {tuple(said_by) for keyword, said_by in sayers.items() if keyword not in idle}
        self._kept = [row for row, said_by in enumerate(owners) if said_by in kept]
        others = [row for row, said_by in enumerate(owners) if said_by in watched and said_by not in kept]
        self._others = [*others, len(owners)]
        self._counts = self._votes.sums(self._rows)

    def radius(self) -> int:
        """Return the largest number of replaced votes that change nothing."""
        least, most = 0, 1
        while most <= self._votes.total and self._holds(most):
            least, most = most, 2 * most
        rest = range(least + 1, min(most, self._votes.total + 1))
        return least + bisect_left(rest, True, key=lambda r: not self._holds(r))

    def holding(self, most: int) -> Holding:
        """Tell for each r from 0 to `most` whether the retained keywords stay the same."""
        return np.array([self._holds(r) for r in range(most + 1)])

    def _holds(self, r: int) -> bool:
        return all(self._stays(row, r) for row in self._kept) and all(self._stays_away(row, r) for row in self._others)

    def _stays(self, row: int, r: int) -> bool:
        """True if a retained keyword stays ahead of p/q of every other one."""
        if self._votes.least(self._rows[row], 0, r) < self._min_support:
            return False
        near = self._q * self._counts[row] - self._p * self._counts <= self._votes.most_replaced(r) * (
            self._p + self._q
        )
        if self._alone[row]:
            near[row] = False  # there is no other keyword that these groups say
        return bool((self._votes.least(self._q * self._rows[row] - self._p * self._rows[near], -self._p, r) > 0).all())

    def _stays_away(self, row: int, r: int) -> bool:
        """True if another keyword stays below the smallest support, or below p/q of some keyword."""
        if -self._votes.least(-self._rows[row], -1, r) < self._min_support:
            return True
        lead: NDArray[np.int64] = self._p * self._counts - self._q * self._counts[row]
        if lead.max() >= self._votes.most_replaced(r) * (self._p + self._q):
            return True
        ahead: Row = self._rows[lead >= 0]
        return bool((self._votes.least(self._p * ahead - self._q * self._rows[row], -self._q, r) >= 0).any())
