"""Lower bounds on a sum over groups when some of them are replaced.

Radii compare counts: p c(x) - q c(y) is a sum over groups, and a replaced group takes away what it gave and adds at
worst a constant. So the worst r groups are those with the largest loss, and no set of groups is enumerated.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

Row = NDArray[np.int64]  # [groups]
Holds: TypeAlias = NDArray[np.bool_]  # [most + 1], for each number of replaced groups

_FIRST_TRIED = 16  # replaced groups; then twice as many, as long as all holds


def worst_case_sums(values: NDArray[np.int64], replaced: int, most: int, pending: int = 0) -> NDArray[np.int64]:
    """Return the smallest sum over the groups, [..., most + 1], for each number of replaced ones from 0 to `most`.

    Args:
        values: [..., groups], what a group adds now; 0 for one that may still say anything.
        replaced: the least that a replaced or a pending group can add; 0 or less.
        most: the most groups that are replaced; no more than there are.
        pending: the number of groups that may still say anything.
    """
    found = np.zeros((*values.shape[:-1], most + 1), np.int64)
    gains = np.minimum(replaced - values, 0)  # of each group that is replaced: 0 or less
    gains.sort(axis=-1)
    np.add.accumulate(gains[..., :most], axis=-1, out=found[..., 1:])
    found += values.sum(axis=-1)[..., None] + pending * replaced
    return found


class Counted(ABC):
    """What groups said, counted, where sums over the groups decide whether it stays when some of them are replaced.

    `groups`: how many there are; `has_wordings`: what stays may be written in several ways.
    """

    has_wordings: ClassVar[bool] = False

    @property
    @abstractmethod
    def groups(self) -> int:
        """The number of groups."""

    @abstractmethod
    def holding(self, most: int, pending: int = 0, *, verbatim: bool = False) -> Holds:
        """Tell for each r from 0 to `most` whether the answer stays.

        Args:
            pending: the number of groups that are not counted yet and may be for anything.
            verbatim: True to ask whether its letters stay, too, where it `has_wordings`.
        """

    def radius(self, pending: int = 0, *, verbatim: bool = False) -> int:
        """Return how many groups can be replaced while the answer stays; -1 if pending ones may change it."""
        return largest_radius(lambda most: self.holding(most, pending, verbatim=verbatim), self.groups)


def largest_radius(holding: Callable[[int], Holds], groups: int) -> int:
    """Return the largest r up to which everything holds, given what holds up to a number of groups; -1 for none."""
    most = min(_FIRST_TRIED, groups)
    while (holds := holding(most)).all() and most < groups:
        most = min(2 * most, groups)
    return most if holds.all() else int(holds.argmin()) - 1
