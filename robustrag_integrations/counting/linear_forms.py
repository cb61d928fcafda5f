"""Lower bounds on a sum over sources when some of them are replaced.

Radii compare counts: p c(x) - q c(y) is a sum over sources, and a replaced source takes away what it gave and adds at
worst a constant. So the worst r sources are those with the largest loss, and no set of sources is enumerated.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

Row = NDArray[np.int64]  # [sources]
Holds: TypeAlias = NDArray[np.bool_]  # [most + 1], for each number of replaced sources

_FIRST_TRIED = 16  # replaced sources; then twice as many, as long as all holds


def worst_case_sums(values: NDArray[np.int64], replaced: int, most: int, pending: int = 0) -> NDArray[np.int64]:
    """Return the smallest sum over the sources, [..., most + 1], for each number of replaced ones from 0 to `most`.

    Args:
        values: [..., sources], what a source adds now; 0 for one that may still say anything.
        replaced: the least that a replaced or a pending source can add; 0 or less.
        most: the most sources that are replaced; no more than there are.
        pending: the number of sources that may still say anything.
    """
    found = np.zeros((*values.shape[:-1], most + 1), np.int64)
    gains = np.minimum(replaced - values, 0)  # of each source that is replaced: 0 or less
    gains.sort(axis=-1)
    np.add.accumulate(gains[..., :most], axis=-1, out=found[..., 1:])
    found += values.sum(axis=-1)[..., None] + pending * replaced
    return found


class Counted(ABC):
    """What sources said, counted, where sums over the sources decide whether it stays when some of them are replaced.

    `said`: per source what counts of it, None for nothing; `has_wordings`: what stays may be written in several ways.
    """

    said: Sequence[Any]
    has_wordings: ClassVar[bool] = False

    @abstractmethod
    def holding(self, most: int, pending: int = 0, *, verbatim: bool = False) -> Holds:
        """Tell for each r from 0 to `most` whether the answer stays.

        Args:
            pending: the number of sources that are not counted yet and may be for anything.
            verbatim: True to ask whether its letters stay, too, where it `has_wordings`.
        """

    def radius(self, pending: int = 0, *, verbatim: bool = False) -> int:
        """Return how many sources can be replaced while the answer stays; -1 if pending ones may change it."""
        return largest_radius(lambda most: self.holding(most, pending, verbatim=verbatim), len(self.said))


def largest_radius(holding: Callable[[int], Holds], sources: int) -> int:
    """Return the largest r up to which everything holds, given what holds up to a number of sources; -1 for none."""
    most = min(_FIRST_TRIED, sources)
    while (holds := holding(most)).all() and most < sources:
        most = min(2 * most, sources)
    return most if holds.all() else int(holds.argmin()) - 1
