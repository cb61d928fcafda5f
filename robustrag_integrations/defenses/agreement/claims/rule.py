"""The rule for claims, and the radius within which the same claims are made."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from robustrag_integrations.defenses.agreement.linear_forms import Holding, Votes, largest_radius
from robustrag_integrations.defenses.agreement.tally import votes_for


@dataclass(frozen=True)
class ClaimRule:
    """Keeps the claims that at least s = `min_support` votes make, each by its own count.

    Theorem. Let c(w) be the votes of claim w, each group voting once for every claim that it makes, and let the content
    of groups of r votes together be replaced. With one vote a group,

    1. a kept claim stays for every r <= c(w) - s, and for no larger r;
    2. a claim of c(w) < s votes, one that nobody makes (c(w) = 0) included, stays out for every r <= s - c(w) - 1 and,
       where r groups that do not make it are left, for no larger r;
    3. the kept *set* is the same for every r up to the least of these numbers, and for no larger r.

    Where nothing is kept and one group alone answers, its claims are shown with a radius of 0 (`agreement/sole.py`).
    Groups that all fall silent but one change a kept set by 1, as it then has no s votes; an abstention stays while
    r < the votes that leave one group alone (`votes_to_alone`).

    So whatever fewer than s votes say, each kept claim has the vote of a group that is not among them.

    Proof. A replaced group makes whatever the attacker likes. It takes away its own vote for w, or adds one for w, and
    no other: so the smallest count after the attack is c(w) - min(r, c(w)), and the largest one c(w) + min(r, groups
    that do not make w). The attacker reaches either by choosing groups with the claim and making them silent, or groups
    without it and having them make it. The set changes when one claim crosses s, which proves 3 from 1 and 2. With
    weights, the most that groups of up to r votes together take away or add is a sum over some of them, a subset sum
    that `Votes.leasts` finds exactly. ∎

    Attributes:
        min_support: s, a fixed number: a share of the groups would let silence lower it.
    """

    min_support: int

    def kept(self, said: Sequence[Collection[str] | None], weights: Sequence[int] | None = None) -> frozenset[str]:
        """Return the claims that enough votes make.

        Args:
            said: per group its claims; None for one that abstained or failed.
            weights: per group its votes; None for one each.
        """
        return frozenset(w for w, count in votes_for(said, weights).items() if count >= self.min_support)

    def radii(self, said: Sequence[Collection[str] | None], kept: Sequence[str], votes: Votes) -> list[int]:
        """Return for each of these kept claims how many votes can be replaced while it stays."""
        rows = _rows(said, kept)
        return [largest_radius(partial(self._stay, row[None], votes), votes.total) for row in rows]

    def holding(
        self, said: Sequence[Collection[str] | None], kept: Collection[str], votes: Votes, most: int, pending: int = 0
    ) -> Holding:
        """Tell for each r from 0 to `most` whether the same claims are kept when any r votes are replaced.

        Args:
            said: per group its claims.
            kept: the claims that are kept.
            votes: the groups' votes.
            most: the largest r.
            pending: the number of votes that are not counted yet and may be for anything.
        """
        others = {w for claims in said if claims is not None for w in claims}.difference(kept)
        holds = self._stay(_rows(said, sorted(kept)), votes, most)
        # Claims of the same groups have the same count, and nobody's claim is that of no group.
        makers = {bytes(row): row for row in _rows(said, sorted(others))}
        absent = np.array([np.zeros(len(said), np.int64), *makers.values()])
        holds &= (votes.leasts(-absent, -1, most, pending) > -self.min_support).all(axis=0)
        return holds

    def _stay(self, rows: NDArray[np.int64], votes: Votes, most: int) -> Holding:
        """Tell for each r whether all of these claims stay; votes that are pending take nothing away."""
        holds = np.ones(most + 1, bool)
        holds &= (votes.leasts(rows, 0, most) >= self.min_support).all(axis=0)
        return holds


def _rows(said: Sequence[Collection[str] | None], claims: Sequence[str]) -> NDArray[np.int64]:
    """Return [claims, groups]: 1 for each group that makes the claim."""
    rows = np.zeros((len(claims), len(said)), np.int64)
    for group, own in enumerate(said):
        if own:
            rows[:, group] = [claim in own for claim in claims]
    return rows
