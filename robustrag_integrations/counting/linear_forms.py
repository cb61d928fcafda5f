"""Lower bounds on a sum over groups when some of them are replaced.

Radii compare counts: p c(x) - q c(y) is a sum over groups, and a replaced group takes away what it gave and adds at
worst a constant. So the worst r groups are those with the largest loss, and no set of groups is enumerated. Where
groups have several votes, the worst ones of r votes together are a knapsack. Where a budget says how many groups of
each tier may be replaced, the worst are those of each tier with the largest loss (`TierVotes`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

Row = NDArray[np.int64]  # [groups]
HoldsPerBudget: TypeAlias = NDArray[np.bool_]  # [most + 1], for each number of replaced votes, or each budget

_FIRST_TRIED = 16  # replaced votes; then twice as many, as long as all holds
_MOST_TRIED = 4000  # numbers in the budgets of several tiers


class Votes:
    """The groups' votes: `weights` per group, none for one that is not counted yet, and their `total`."""

    def __init__(self, weights: Sequence[int]) -> None:
        self._weights: Row = np.array(weights, np.int64)
        self.total = int(self._weights.sum())
        self._is_plain = bool((self._weights <= 1).all())

    def worst_case_sums(
        self, values: NDArray[np.int64], replaced: int, most: int, pending: int = 0
    ) -> NDArray[np.int64]:
        """Return the smallest sum over the groups, [..., most + 1], for each number of replaced votes from 0 to `most`.

        Args:
            values: [..., groups], what each vote of a group adds now.
            replaced: the least that a replaced or a pending vote can add; 0 or less.
            most: the most votes that are replaced, all of a group or none; no more than there are.
            pending: the number of votes that are not among these yet.
        """
        found = np.zeros((*values.shape[:-1], most + 1), np.int64)
        gains = np.minimum(replaced - values, 0)  # of each vote that is replaced: 0 or less
        if self._is_plain:
            gains *= self._weights
            gains.sort(axis=-1)
            np.add.accumulate(gains[..., :most], axis=-1, out=found[..., 1:])
        else:
            for group, weight in enumerate(self._weights):  # a knapsack
                if weight <= most:
                    added = found[..., : most + 1 - weight] + weight * gains[..., group, None]
                    found[..., weight:] = np.minimum(found[..., weight:], added)
        found += (values @ self._weights)[..., None]
        return found + pending * replaced


class TierVotes(Votes):
    """The groups' votes where a budget says how many groups of each tier are replaced: its place stands for r.

    The first budget replaces none.
    """

    def __init__(self, weights: Sequence[int], tiers: Sequence[str], budgets: Sequence[Mapping[str, int]]) -> None:
        super().__init__(weights)
        self._groups = {tier: [i for i, own in enumerate(tiers) if own == tier] for tier in dict.fromkeys(tiers)}
        self._budgets, self.last = budgets, len(budgets) - 1  # the place of the last budget

    def worst_case_sums(
        self, values: NDArray[np.int64], replaced: int, most: int, pending: int = 0
    ) -> NDArray[np.int64]:
        """Return the smallest sum over the groups for each budget up to the one at `most`."""
        budgets = self._budgets[: most + 1]
        losses = np.minimum(replaced - values, 0) * self._weights
        found = np.repeat((values @ self._weights)[..., None], len(budgets), axis=-1)
        for tier, groups in self._groups.items():
            worst = np.zeros((*values.shape[:-1], len(groups) + 1), np.int64)
            np.cumsum(np.sort(losses[..., groups], axis=-1), axis=-1, out=worst[..., 1:])
            found += worst[..., [min(budget.get(tier, 0), len(groups)) for budget in budgets]]
        return found + pending * replaced


class Counted(ABC):
    """What groups said, counted, where sums over the groups decide whether it stays when some of them are replaced.

    `weights`: per group how many votes it has, none if it may still say anything; `has_wordings`: what stays may be
    written in several ways.
    """

    weights: Sequence[int]
    has_wordings: ClassVar[bool] = False

    @abstractmethod
    def holding(self, votes: Votes, most: int, pending: int = 0, *, verbatim: bool = False) -> HoldsPerBudget:
        """Tell for each r from 0 to `most`, or for each budget of the votes, whether the answer stays.

        Args:
            pending: the number of votes that are not counted yet and may be for anything.
            verbatim: True to ask whether its letters stay, too, where it `has_wordings`.
        """

    def radius(self, pending: int = 0, *, verbatim: bool = False) -> int:
        """Return how many votes can be replaced while the answer stays; -1 if pending ones may change it."""
        votes = Votes(self.weights)
        return largest_radius(lambda most: self.holding(votes, most, pending, verbatim=verbatim), votes.total)

    def tier_budgets(
        self, tiers: Sequence[str], pending: int, succeeded: Sequence[int], needed: int
    ) -> tuple[dict[str, int], ...]:
        """Return the largest numbers of groups of each tier that can be replaced together.

        Args:
            succeeded: per group its votes if its call succeeded, else 0.
            needed: the sum of these that must be left.
        """

        def stays(budgets: Sequence[dict[str, int]]) -> HoldsPerBudget:
            votes, calls = TierVotes(self.weights, tiers, budgets), TierVotes(succeeded, tiers, budgets)
            enough: HoldsPerBudget = calls.worst_case_sums(np.ones(len(tiers), np.int64), 0, votes.last) >= needed
            return enough & self.holding(votes, votes.last, pending)

        return largest_budgets(tiers, stays)


def largest_budgets(
    tiers: Sequence[str], holding: Callable[[Sequence[dict[str, int]]], HoldsPerBudget]
) -> tuple[dict[str, int], ...]:
    """Return the budgets up to which everything holds: those that no larger one covers.

    Budgets are tried from the smallest on, each only if all below it hold. Those of one tier alone are all tried, and
    of the others some hundreds, fewer where there are many tiers; what is not tried does not count as proved. `holding`
    tells for each of these budgets whether everything holds; the first one replaces no group.
    """
    sizes = Counter(tiers)
    names = tuple(sizes)
    nothing = (0,) * len(names)
    proved, level, tried = {nothing}, [nothing], 0
    while level:
        larger = {_with(budget, place, 1) for budget in level for place in range(len(names))}
        level = []
        for budget in sorted(larger, reverse=True):
            within = all(count <= sizes[name] for name, count in zip(names, budget, strict=True))
            below = (_with(budget, place, -1) for place, count in enumerate(budget) if count)
            alone = sum(map(bool, budget)) == 1
            if within and proved.issuperset(below) and (alone or tried < _MOST_TRIED):
                tried += 0 if alone else len(names)
                level.append(budget)
        if level:
            named = [dict(zip(names, budget, strict=True)) for budget in (nothing, *level)]
            level = [budget for budget, holds in zip(level, holding(named)[1:], strict=True) if holds]
            proved.update(level)
    largest = [b for b in proved if not any(_with(b, place, 1) in proved for place in range(len(names)))]
    return tuple(dict(zip(names, budget, strict=True)) for budget in sorted(largest, reverse=True))


def _with(budget: tuple[int, ...], place: int, more: int) -> tuple[int, ...]:
    return (*budget[:place], budget[place] + more, *budget[place + 1 :])


def largest_radius(holding: Callable[[int], HoldsPerBudget], total: int) -> int:
    """Return the largest r up to which everything holds, given what holds up to a number of votes; -1 for none."""
    most = min(_FIRST_TRIED, total)
    while (holds := holding(most)).all() and most < total:
        most = min(2 * most, total)
    return most if holds.all() else int(holds.argmin()) - 1
