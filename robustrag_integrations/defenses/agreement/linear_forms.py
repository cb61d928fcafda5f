"""Lower bounds on a sum over groups when some of them are replaced.

Radii compare counts: p c(x) - q c(y) is a sum over groups, and a replaced group takes away what it gave and adds at
worst a constant. So the worst r groups are those with the largest loss, and no set of groups is enumerated. Where
groups have several votes, the worst ones of r votes together are a knapsack.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Row = NDArray[np.int64]  # [groups]
Holding: TypeAlias = NDArray[np.bool_]  # [most + 1], for each number of replaced votes

_FIRST_TRIED = 16  # replaced votes; then twice as many, as long as all holds


class Votes:
    """The groups' votes.

    Args:
        groups: how many groups there are.
        weights: how many votes each has, at least 1; None for one each.

    Attributes:
        total: all votes.
    """

    def __init__(self, groups: int, weights: Sequence[int] | None = None) -> None:
        self._weights: Row = np.array(weights if weights is not None else [1] * groups, np.int64)
        self._is_plain = bool((self._weights == 1).all())
        self.total = int(self._weights.sum())

    def sums(self, values: NDArray[np.int64]) -> NDArray[np.int64]:
        """Sum over the groups, each weighted by its votes.

        Args:
            values: [..., groups], what each vote of a group adds.
        """
        found: NDArray[np.int64] = values @ self._weights
        return found

    def least(self, values: NDArray[np.int64], replaced: int, r: int) -> NDArray[np.int64]:
        """Return the smallest sum over the groups when r votes are replaced (`leasts`)."""
        return self.leasts(values, replaced, r)[..., r]

    def leasts(
        self, values: NDArray[np.int64], replaced: int | NDArray[np.int64], most: int, pending: int = 0
    ) -> NDArray[np.int64]:
        """Return the smallest sum over the groups, for each number of replaced votes from 0 to `most`.

        Args:
            values: [..., groups], what each vote of a group adds now.
            replaced: the least that a replaced or a pending vote can add, of all sums or of each one [..., 1]; 0 or
                less.
            most: how many votes are replaced at most, all of a group or none; no more than there are.
            pending: how many votes are not among these yet.

        Returns:
            [..., most + 1].
        """
        found = np.zeros((*values.shape[:-1], most + 1), np.int64)
        gains = np.minimum(replaced - values, 0)  # of each vote that is replaced: 0 or less
        if self._is_plain:
            gains.sort(axis=-1)
            np.add.accumulate(gains[..., :most], axis=-1, out=found[..., 1:])
        else:
            self._pack(gains, found)
        found += self.sums(values)[..., None]
        if pending:
            found += pending * replaced
        return found

    def _pack(self, gains: NDArray[np.int64], worst: NDArray[np.int64]) -> None:
        """Lower `worst` from 0 to the least that groups of up to so many votes together can add by being replaced."""
        for group, weight in enumerate(self._weights):
            if weight < worst.shape[-1]:
                added = worst[..., : worst.shape[-1] - weight] + weight * gains[..., group, None]
                worst[..., weight:] = np.minimum(worst[..., weight:], added)


def largest_radius(holding: Callable[[int], Holding], total: int) -> int:
    """Return the largest r up to which everything holds, given what holds up to a number of votes; -1 for none."""
    most = min(_FIRST_TRIED, total)
    while (holds := holding(most)).all() and most < total:
        most = min(2 * most, total)
    return most if holds.all() else int(holds.argmin()) - 1
