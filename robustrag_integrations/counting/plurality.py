"""The count of whole answers: most votes win, ties are told, a runoff may settle them, and the radius of all that.

    winner   the key that most groups give, given by `min_support` votes at least
             and by more than one in `one_in` of the votes that answer
    tie      several keys lead: no answer, unless one of them wins the runoff
    runoff   a key beats another one with as many votes if more of the groups that say neither find it likelier; the
             winner beats all the others that lead. Nothing of a candidate is read as a prompt

Confidence never counts: a tie-break by confidence gives ties to attackers, whose replies are sure.

**The radius.** The winner w stays ahead of a rival k, one that nobody has given yet among them, if

    B * sum over all groups of ([g says w] - [g says k])
      + sum over the groups that say neither of ([g prefers w] - [g prefers k])

is above 0, where B is more than all votes: a lead, or no lead and more preferences. A replaced group takes back its
term and adds at worst a vote for k, -B, which no preference outweighs, so that the worst r votes are those with the
largest loss (`linear_forms.py`), and no set of groups is enumerated. Preferences are functions of a key and of a
group's own passages alone, so that those of the untouched groups stand. Of a rival that nobody has given, or that was
not scored, no preference is known: it ties as lost. The winner keeps `min_support` votes if its votes less the replaced
ones do, and its share if sum of (one_in [g says w] - [g answers]) stays above 0, where a replaced group adds at worst
-1.

**The share.** Two votes of nine, where each of the others says something else, are no agreement: two planted passages
have as many. On recorded replies a share of more than a quarter cut the attacker's answers at two planted passages from
30 to 11 in a hundred, and right answers without an attack from 40 to 38.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from robustrag_integrations.counting.linear_forms import Counted, HoldsPerBudget, Row, Votes

Key = TypeVar("Key", bound=Hashable)
Scores = Mapping[Key, Sequence[float | None]]  # of each key that was scored, per group its log-probability

_REPLACED = -1  # what a replaced vote adds at worst: a vote for the rival
_LOST_TIE = 0  # what a lead must be above
UNLIKELY = -9.2  # a log-probability below which a group has no view of an answer: one in ten thousand


@dataclass(frozen=True)
class Rule:
    """The rule by which an answer is chosen.

    Attributes:
        one_in: it also needs more than one in so many of the votes that answer: 2 is a majority; 0, any share.
        noise: the least difference of two scores that is a preference; what is closer may be the arithmetic's.
    """

    min_support: int = 2
    one_in: int = 0
    noise: float = 0.0

    def shares(self, votes: int, answering: int) -> bool:
        """True if these votes are enough of those that answer."""
        return not self.one_in or self.one_in * votes > answering


@dataclass(frozen=True)
class Count(Counted, Generic[Key]):
    """The count of the groups' answers.

    Attributes:
        keys: per group the key of its answer; None for one that abstained or failed.
        weights: per group how many votes it has; none for one that may still say anything.
        scores: of keys that were scored, per group how likely it finds that answer; it settles ties.
        votes: the votes of each key, those with most first.
        tied: the answers that have most votes, `min_support` at least, where none of them is chosen.
        by_runoff: True if the winner has no more votes than another answer.
    """

    keys: tuple[Key | None, ...]
    weights: tuple[int, ...]
    rule: Rule
    scores: Scores[Key] = field(default_factory=dict)
    votes: Mapping[Key, int] = field(init=False)
    winner: Key | None = field(init=False)
    tied: tuple[Key, ...] = field(init=False)
    by_runoff: bool = field(init=False)

    def __post_init__(self) -> None:
        votes: Counter[Key] = Counter()
        for key, weight in zip(self.keys, self.weights, strict=True):
            if key is not None:
                votes[key] += weight
        ranked = dict(votes.most_common())
        most = max(ranked.values(), default=0)
        leading = tuple(key for key, count in ranked.items() if count == most)
        winner, tied = None, ()  # type: tuple[Key | None, tuple[Key, ...]]
        if ranked and most >= self.rule.min_support:
            if self.rule.shares(most, sum(ranked.values())):
                winner = leading[0] if len(leading) == 1 else self._runoff(leading)
            tied = leading if winner is None else ()
        by_runoff = winner is not None and len(leading) > 1
        for name, value in (("votes", ranked), ("winner", winner), ("tied", tied), ("by_runoff", by_runoff)):
            object.__setattr__(self, name, value)

    def _runoff(self, leading: Sequence[Key]) -> Key | None:
        weights = np.array(self.weights, np.int64)
        for key in leading:
            if all(key is other or weights @ self._preferences(key, other) > 0 for other in leading):
                return key
        return None

    def _preferences(self, key: Key, other: Key) -> Row:
        """Return, per group that says neither, 1 if it finds `key` likelier, -1 if `other`, 0 if it has no view."""
        found = np.zeros(len(self.keys), np.int64)
        if key in self.scores and other in self.scores:
            pairs = zip(self.keys, self.scores[key], self.scores[other], strict=True)
            for group, (said, one, two) in enumerate(pairs):
                if said in (key, other) or one is None or two is None or max(one, two) <= UNLIKELY:
                    continue
                if abs(one - two) > self.rule.noise:
                    found[group] = 1 if one > two else -1
        return found

    def holding(self, votes: Votes, most: int, pending: int = 0, *, verbatim: bool = False) -> HoldsPerBudget:
        """Tell for each r, or each budget of the votes, whether the same key wins.

        Without a winner no replacement leaves anything: who disagrees can be brought to agree.
        """
        holds: HoldsPerBudget = np.zeros(most + 1, bool)
        if self.winner is not None:
            above = votes.total + pending + 1
            own, rivals, leads = self._leads(self.winner)
            preferred = np.array([0 * own, *(self._preferences(self.winner, key) for key in rivals)])
            ahead = votes.worst_case_sums(above * leads + preferred, above * _REPLACED, most, pending) > _LOST_TIE
            holds = np.asarray(ahead.all(axis=0)) & self._is_enough(own, votes, most, pending)
        holds[0] |= pending == 0
        return holds

    def worth_scoring(self) -> tuple[Key, ...]:
        """Return the keys whose scores may change the outcome: tied ones, or rivals a tie away from the winner."""
        if self.winner is None:
            most = max(self.votes.values(), default=0)
            return self.tied if len(self.tied) > 1 and self.rule.shares(most, sum(self.votes.values())) else ()
        further, votes = self.radius() + 1, Votes(self.weights)
        if further > votes.total:
            return ()
        own, rivals, leads = self._leads(self.winner)
        left = votes.worst_case_sums(leads, -1, further)[:, further]
        tying = [key for key, lead in zip(rivals, left[1:], strict=True) if lead == 0]
        enough = self._is_enough(own, votes, further)[further] and left[0] > 0 and (left >= 0).all()
        return (self.winner, *tying) if enough and tying else ()

    def _leads(self, winner: Key) -> tuple[Row, list[Key], NDArray[np.int64]]:
        """Return, per group, whether it says the winner; the rivals; and the winner's lead over none and each."""
        rivals = [key for key in self.votes if key != winner]
        own, *others = np.array([[said == key for said in self.keys] for key in (winner, *rivals)], np.int64)
        return own, rivals, np.array([own, *(own - other for other in others)])

    def _is_enough(self, own: Row, votes: Votes, most: int, pending: int = 0) -> HoldsPerBudget:
        enough: HoldsPerBudget = votes.worst_case_sums(own, 0, most, pending) >= self.rule.min_support
        if self.rule.one_in:
            answering = np.array([key is not None for key in self.keys], np.int64)
            enough &= votes.worst_case_sums(self.rule.one_in * own - answering, -1, most, pending) > 0
        return enough


def possible_winners(
    keys: Sequence[Key | None], rule: Rule, corrupted: int, known: Collection[Key] = ()
) -> tuple[set[Key], bool, bool]:
    """Return what can be answered next to so many corrupted groups, which may say anything or abstain.

    A key can win if it reaches the others' votes with all corrupted groups behind it: a runoff may go either way.
    `known` are further keys that a corrupted group may give, where these are all that there are (options).

    Returns:
        The keys that can win; whether there can be no winner; whether a key of the corrupted groups alone can win.
    """
    count = Count(tuple(keys), (1,) * len(keys), rule)
    if corrupted == 0 or count.holding(Votes(count.weights), 0, corrupted)[0]:
        return ({count.winner} if count.winner is not None else set()), count.winner is None, False
    most = max(count.votes.values(), default=0)
    needed = max(most, rule.min_support)
    answering = sum(count.votes.values()) + corrupted

    def can_win(votes: int) -> bool:
        return votes + corrupted >= needed and rule.shares(votes + corrupted, answering)

    winners = {key for key in {*count.votes, *known} if can_win(count.votes.get(key, 0))}
    return winners, True, can_win(0)
