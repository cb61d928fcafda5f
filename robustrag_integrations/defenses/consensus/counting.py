"""The keys that a consensus agrees on, and the radius of that agreement.

    core    = the key that most groups say          (among equals the one of fewer tokens, then the smaller one)
    agreed  = what more than a share of the core's groups say with it, the core among it
    answer  = the agreed keys that are part of no other one (`agreement/agreed.py`)

There is no answer where fewer than `min_support` groups say the core, or as many only repeat the question.

The radius. After r groups were replaced some key k is the core. The same keys are agreed on if for every k that any
group may say, one that nobody has said yet included,

    (1) k cannot be the core: an agreed key stays ahead of it, c'(a) > c'(k), or c'(a) = c'(k) and a comes first; or
    (2) k is agreed on now, and next to it every other agreed key a stays, q c'(k, a) > p c'(k), every other key e
        stays away, q c'(k, e) <= p c'(k), and c'(k) >= min_support,

where p/q is the share and c'(k, a) counts the groups that say both; and if an agreed key stays ahead of the echoes.
Each is a sum over groups. A replaced group takes away what it gave and adds at worst a constant, so that the worst r
groups are those with the largest loss (`agreement/linear_forms.py`), and no set of groups is enumerated. A key cannot
be said without its parts (`comes_with`), which then lose nothing against it.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from robustrag_integrations.defenses.agreement.linear_forms import Holding, Votes
from robustrag_integrations.defenses.agreement.numbers import among_counts
from robustrag_integrations.defenses.agreement.tally import votes_for

_MOST_CELLS = 100_000  # of an array of many keys beside many


@dataclass(frozen=True)
class ConsensusRule:
    """The rule that chooses an answer's keys.

    Attributes:
        share: a key is agreed on if more than this share of the core's groups say it, too; in [1/2, 1).
        min_support: the votes that the core needs; below, there is no answer.
    """

    share: Fraction
    min_support: int

    def reached(self, together: int, strongest: int) -> bool:
        """True if this count is more than `share` of the core's, compared exactly."""
        return self.share.denominator * together > self.share.numerator * strongest

    def agreed(
        self, said: Sequence[Collection[str] | None], weights: Sequence[int] | None = None, echoes: int = 0
    ) -> frozenset[str]:
        """Return the core and the keys agreed on with it; empty where there is no answer.

        Args:
            said: per group its keys; None for one that abstained or failed.
            weights: per group how many votes it has.
            echoes: the number of votes that only repeat the question.
        """
        counts = votes_for(said, weights)
        core = min(counts, key=lambda key: (-counts[key], *rank(key)), default=None)
        if core is None or counts[core] < self.min_support or counts[core] <= echoes:
            return frozenset()
        together = votes_for([keys if keys is not None and core in keys else None for keys in said], weights)
        return frozenset(key for key, count in together.items() if self.reached(count, counts[core]))


def rank(key: str) -> tuple[int, str]:
    """Return the rank that breaks ties: of keys that equally many groups say, the smallest rank is the core."""
    return key.count(" "), key


class ConsensusRadius:
    """Proves that the same keys are agreed on under substitution(r).

    Args:
        said: per group its keys; None for one that abstained or failed, which can be replaced, too.
        echoes: per group whether it only repeats the question.
        agreed: the agreed keys.
        rule: the rule.
        votes: the groups' votes.
        comes_with: a function that is True if a key cannot be said without a part of it.
    """

    def __init__(
        self,
        said: Sequence[Collection[str] | None],
        echoes: Sequence[bool],
        agreed: Collection[str],
        rule: ConsensusRule,
        votes: Votes,
        comes_with: Callable[[str, str], bool],
    ) -> None:
        self._rule, self._votes, self._comes_with = rule, votes, comes_with
        sayers: defaultdict[str, int] = defaultdict(int)
        for group, keys in enumerate(said):
            for key in keys or ():
                sayers[key] |= 1 << group
        inside: defaultdict[int, list[str]] = defaultdict(list)
        outside: defaultdict[int, tuple[int, str]] = defaultdict(lambda: (sys.maxsize, ""))
        outside[0] = (-1, "")  # a key that nobody says yet may come before all others
        for key, bits in sayers.items():
            if key in agreed:
                inside[bits].append(key)
            else:
                outside[bits] = min(outside[bits], rank(key))
        groups = len(said)
        self._inside, self._ranks = list(inside.values()), [min(map(rank, keys)) for keys in inside.values()]
        self._outside_ranks = list(outside.values())
        self._inner, self._outer = _rows(list(inside), groups), _rows(list(outside), groups)
        self._echoes = np.array(echoes, np.int64)

    def holding(self, most: int, pending: int = 0) -> Holding:
        """Tell for each r from 0 to `most` whether the same keys are agreed on when any r votes are replaced.

        Args:
            most: the largest r.
            pending: number of votes that are not counted yet and may be for anything.
        """
        holds = np.zeros(most + 1, bool)
        if self._inside:
            holds = self._least(self._inner - self._echoes, -1, most, pending).max(axis=0) > 0
            together = max(1, _MOST_CELLS // self._inner.size)
            for first in range(0, len(self._outer), together):
                rows = self._outer[first : first + together]
                ranks = self._outside_ranks[first : first + together]
                comes_first = np.array([[own < other for own in self._ranks] for other in ranks])
                ahead = self._least(self._inner - rows[:, None], -1, most, pending) + comes_first[..., None] > 0
                holds &= ahead.any(axis=1).all(axis=0)
            for core in range(len(self._inside)):
                holds &= self._holds_around(core, most, pending)
        holds[0] |= pending == 0
        return holds

    def _holds_around(self, core: int, most: int, pending: int) -> Holding:
        """Tell for each r whether the same keys are agreed on if this one is the core, or it cannot be the core."""
        row, keys = self._inner[core], self._inside[core]
        share = among_counts(self._rule.share, self._votes.total + pending)
        p, q = share.numerator, share.denominator
        stays = self._least((q * self._inner - p) * row, -p, most, pending) > 0
        stays[core] |= len(keys) == 1  # it is not said without itself
        away = self._least((p - q * self._outer) * row, p - q, most, pending) >= 0
        enough = self._least(row, 0, most, pending) >= self._rule.min_support
        with_core = [
            others is keys or all(any(self._comes_with(own, key) for own in others) for key in keys)
            for others in self._inside
        ]
        replaced = np.array(with_core, np.int64)[:, None] - 1
        first = np.array([own < self._ranks[core] for own in self._ranks])
        ahead = self._least(self._inner - row, replaced, most, pending) + first[:, None] > 0
        holds: Holding = (stays.all(axis=0) & away.all(axis=0) & enough) | ahead.any(axis=0)
        return holds

    def _least(
        self, values: NDArray[np.int64], replaced: int | NDArray[np.int64], most: int, pending: int
    ) -> NDArray[np.int64]:
        return self._votes.leasts(values, replaced, most, pending)


def _rows(sayers: Sequence[int], groups: int) -> NDArray[np.int64]:
    """Return [keys, groups]: 1 for each group that says the key."""
    rows = np.zeros((len(sayers), groups), np.int64)
    for row, bits in zip(rows, sayers, strict=True):
        row[:] = [bits >> group & 1 for group in range(groups)]
    return rows
