"""Counting, pure: which answer wins, and how many sources can be replaced without changing it.

Radii compare counts: p c(x) - q c(y) is a sum over sources, and a replaced source takes away what it gave and adds at
worst a constant. So the worst r sources are those with the largest loss, and no set of sources is enumerated.

The count of whole answers:

    winner   the key that most sources give, given by `min_support` votes at least, by more than one in `one_in` of
             those that answer, and if it begins with a verdict by more than all that begin with the opposite one
             together
    tied     the keys with most votes, `min_support` at least, where none of them wins: no answer

Confidence never counts: a tie-break by confidence gives ties to attackers, whose replies are sure.

**The share.** Two votes of nine, where each of the others says something else, are no agreement: two planted passages
have as many. On recorded replies a share of more than a quarter cut the attacker's answers at two planted passages from
30 to 11 in a hundred, and right answers without an attack from 40 to 38.

**Verdicts.** `Yes`, `Yes, employees may`, `Yes, on Fridays`, `No`, `No`: two keys are as alike as any two, and no is no
answer where three of five sources say yes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from typing import Any, ClassVar, Generic, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

Key = TypeVar("Key", bound=Hashable)
Row = NDArray[np.int64]  # [sources]
Holds: TypeAlias = NDArray[np.bool_]  # [most + 1], for each number of replaced sources

_FIRST_TRIED = 16  # replaced sources; then twice as many, as long as all holds
_REPLACED = -1  # what a replaced source adds at worst: a vote for the rival
_LOST_TIE = 0  # what a lead must be above


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


def _no_verdict(key: Any) -> None:
    return None


@dataclass(frozen=True)
class Rule:
    """The rule by which an answer is chosen.

    Attributes:
        min_support: the votes that it needs.
        one_in: it also needs more than one in so many of the votes that answer: 2 is a majority; 0, any share.
        verdict: the verdict that a key begins with, one of two that are opposite; None for a key without one.
    """

    min_support: int = 2
    one_in: int = 0
    verdict: Callable[[Any], str | None] = _no_verdict

    def wins(self, votes: int, rival: int, answering: int, opposed: int) -> bool:
        """True if a key with so many votes wins.

        Args:
            rival: the votes of the strongest other key.
            answering: the votes of all keys.
            opposed: the votes of those with the opposite verdict.
        """
        enough = votes >= self.min_support and (not self.one_in or self.one_in * votes > answering)
        return enough and votes > max(rival, opposed)


@dataclass(frozen=True)
class Count(Counted, Generic[Key]):
    """The count of the sources' answers.

    Attributes:
        said: per source the key of its answer; None for one that abstained or failed, or may still say anything.
        votes: the votes of each key, those with most first.
        tied: the keys that have most votes, `min_support` at least, where none of them wins.
    """

    said: tuple[Key | None, ...]
    rule: Rule
    votes: Mapping[Key, int] = field(init=False)
    winner: Key | None = field(init=False)
    tied: tuple[Key, ...] = field(init=False)

    def __post_init__(self) -> None:
        votes = dict(Counter(key for key in self.said if key is not None).most_common())
        object.__setattr__(self, "votes", votes)
        first = next(iter(votes), None)
        winner = first if first is not None and self.can_win(first) else None
        most = max(votes.values(), default=0)
        is_tie = winner is None and most >= self.rule.min_support
        tied = tuple(key for key, count in votes.items() if count == most) if is_tie else ()
        object.__setattr__(self, "winner", winner)
        object.__setattr__(self, "tied", tied)

    def can_win(self, key: Key | None, more: int = 0) -> bool:
        """True if a key (None: one that nobody gives, without a verdict) wins with so many more sources behind it."""
        own = None if key is None else self.rule.verdict(key)
        opposed = 0
        if own is not None:
            opposed = sum(n for side, n in self._sides.items() if side not in (own, None))
        votes, strongest = self.votes.get(key, 0) if key is not None else 0, [*islice(self.votes, 2)]
        rival = max((self.votes[other] for other in strongest if other != key), default=0)
        return self.rule.wins(votes + more, rival, self._sides.total() + more, opposed)

    @cached_property
    def _sides(self) -> Counter[str | None]:
        """The votes of each verdict, and of all keys without one."""
        sides = Counter[str | None]()
        for key, votes in self.votes.items():
            sides[self.rule.verdict(key)] += votes
        return sides

    def holding(self, most: int, pending: int = 0, *, verbatim: bool = False) -> Holds:
        """Tell for each r whether the same key wins.

        Without a winner no replacement leaves anything: who disagrees can be brought to agree.
        """
        holds: Holds = np.zeros(most + 1, bool)
        if self.winner is not None:
            own = np.array([key == self.winner for key in self.said], np.int64)
            rivals = (key for key in self.votes if key != self.winner)
            against = [[key == rival for key in self.said] for rival in islice(rivals, 1)]  # the strongest
            if (verdict := self.rule.verdict(self.winner)) is not None:
                sides = {key: self.rule.verdict(key) for key in self.votes}
                against.append([key is not None and sides[key] not in (verdict, None) for key in self.said])
            leads = np.array([own, *(own - np.array(rival, np.int64) for rival in against)])  # the first over a new one
            holds = np.asarray((worst_case_sums(leads, _REPLACED, most, pending) > _LOST_TIE).all(axis=0))
            holds &= worst_case_sums(own, 0, most, pending) >= self.rule.min_support
            if self.rule.one_in:
                answering = np.array([key is not None for key in self.said], np.int64)
                holds &= worst_case_sums(self.rule.one_in * own - answering, _REPLACED, most, pending) > 0
        holds[0] |= pending == 0
        return holds


def possible_winners(
    keys: Sequence[Key | None], rule: Rule, corrupted: int, known: Collection[Key] = ()
) -> tuple[set[Key], bool, bool]:
    """Return what can be answered next to so many corrupted sources, which may say anything or abstain.

    A key can win if it does with all corrupted sources behind it. `known` are further keys that a corrupted source may
    give, where these are all that there are (options).

    Returns:
        The keys that can win; whether there can be no winner; whether a key of the corrupted sources alone can win.
    """
    count = Count(tuple(keys), rule)
    if corrupted == 0 or count.holding(0, corrupted)[0]:
        return ({count.winner} if count.winner is not None else set()), count.winner is None, False
    winners = {key for key in {*count.votes, *known} if count.can_win(key, corrupted)}
    return winners, True, count.can_win(None, corrupted)
