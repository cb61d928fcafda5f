"""The count of whole answers: most votes win, ties are told, and the radius of all that.

    winner   the key that most sources give, given by `min_support` votes at least, by more than one in `one_in` of
             those that answer, and if it begins with a verdict by more than all that begin with the opposite one
             together
    tied     the keys with most votes, `min_support` at least, where none of them wins: no answer

Confidence never counts: a tie-break by confidence gives ties to attackers, whose replies are sure.

**The radius.** The winner w stays ahead of a rival k, one that nobody has given yet among them, if the sum over all
sources of [g says w] - [g says k] is above 0; for the strongest rival it is least. A replaced source takes back its
term and adds at worst a vote for k, -1, so that the worst r sources are those with the largest loss
(`linear_forms.py`), and no set of sources is enumerated. The winner keeps `min_support` votes if its votes less the
replaced ones do; its share if the sum of one_in [g says w] - [g answers] stays above 0; its verdict if that of [g says
w] - [g says the opposite] does. In both a replaced source adds at worst -1.

**The share.** Two votes of nine, where each of the others says something else, are no agreement: two planted passages
have as many. On recorded replies a share of more than a quarter cut the attacker's answers at two planted passages from
30 to 11 in a hundred, and right answers without an attack from 40 to 38.

**Verdicts.** `Yes`, `Yes, employees may`, `Yes, on Fridays`, `No`, `No`: two keys are as alike as any two, and no is no
answer where three of five sources say yes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from typing import Any, Generic, TypeVar

import numpy as np

from robustrag_integrations.counting.linear_forms import Counted, Holds, worst_case_sums

Key = TypeVar("Key", bound=Hashable)
_REPLACED = -1  # what a replaced source adds at worst: a vote for the rival
_LOST_TIE = 0  # what a lead must be above


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
