"""The radius of a consensus.

All of it is decided by comparisons p c(x) > q c(y) of how many groups say two things, which are sums over groups.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Sequence
from itertools import accumulate, repeat
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from robustrag_integrations.defenses.agreement.linear_forms import Row, Votes
from robustrag_integrations.defenses.agreement.numbers import among_counts
from robustrag_integrations.defenses.consensus.counting import (
    ConsensusRule,
    Wording,
    majority,
)

Holding: TypeAlias = NDArray[np.bool_]  # [most + 1], for each number of replaced votes

_UNSAID = "\0"
_FIRST_TRIED = 16  # replaced votes; then twice as many, as long as all holds
_MOST_CELLS = 100_000  # of an array of many keywords beside many


class ConsensusRadius:
    """Proves that a consensus stays as it is under substitution(r).

    Args:
        keyword_sets: per vote its keywords; None for one that abstained or failed, which can be replaced, too.
        agreed: what was agreed on.
        phrases: the phrases that a list shows.
        wordings: how each vote words them.
        rule: the rule.
        weights: how many votes each group has, in the order of the votes; None: one each.
    """

    def __init__(
        self,
        keyword_sets: Sequence[Collection[str] | None],
        agreed: Collection[str],
        phrases: Sequence[str],
        wordings: Sequence[Wording],
        rule: ConsensusRule,
        weights: Sequence[int] | None = None,
    ) -> None:
        self._rule = rule
        votes_of = weights if weights is not None else [1] * len(keyword_sets)
        self._firsts = [end - votes for end, votes in zip(accumulate(votes_of), votes_of, strict=True)]
        self._groups = len(self._firsts)
        self._votes = Votes(self._groups, weights)
        alike: defaultdict[frozenset[str], int] = defaultdict(int)  # the groups that say the same, as bits
        for group, first in enumerate(self._firsts):
            alike[frozenset(keyword_sets[first] or ())] |= 1 << group
        sayers: defaultdict[str, int] = defaultdict(int)  # those that say a keyword
        for words, bits in alike.items():
            for word in words:
                sayers[word] |= bits
        owners = Counter(sayers.values())
        inside = {word: bits for word, bits in sayers.items() if word in agreed}
        outside = {bits for word, bits in sayers.items() if word not in agreed}
        rows = [*owners, 0]  # 0: that of a keyword that nobody says
        places = {bits: place for place, bits in enumerate(rows)}
        keys = list(dict.fromkeys(inside.values()))
        self._all = np.array([[bits >> group & 1 for group in range(self._groups)] for bits in rows], np.int64)
        self._agreed = self._all[[places[key] for key in keys]]
        self._alone = [owners[key] == 1 for key in keys]
        self._outside = self._all[[*(places[key] for key in sorted(outside)), places[0]]]
        self._phrases = {p: places[inside[p]] for p in phrases}
        self._wordings = wordings
        self._strongest = int(self._votes.sums(self._all).max())

    def radius(self, pending: int = 0) -> int:
        """The largest r that `holds`; -1 if not even the pending groups can be awaited."""
        most = min(_FIRST_TRIED, self._votes.total)
        while (holding := self._holding(most, pending)).all() and most < self._votes.total:
            most = min(2 * most, self._votes.total)
        return most if holding.all() else int(holding.argmin()) - 1

    def holds(self, r: int, pending: int = 0) -> bool:
        """Whether the text stays when r groups are replaced and `pending` more, not counted yet, say anything."""
        return bool(self._holding(r, pending)[r])

    def _holding(self, most: int, pending: int) -> Holding:
        """Whether it `holds`, for each r from 0 to `most`; so are the results of all methods below."""
        holding = np.zeros(most + 1, bool)
        if len(self._agreed):
            holding = self._agreed_stays(most, pending) & self._wording_stays(most, pending)
        holding[0] |= pending == 0
        return holding

    def _agreed_stays(self, most: int, pending: int) -> Holding:
        """Whether the same keywords are agreed on, whichever keyword becomes the strongest.

        A keyword cannot become the strongest if an agreed one stays ahead of it: c(u) > c(k). Next to a strongest
        keyword k, another one w stays if q c(k, w) > p c(k), and e stays away if q c(k, e) <= p c(k), where c(k, w) is
        how many groups say both.
        """
        stays = np.ones(most + 1, bool)
        together = max(1, _MOST_CELLS // self._agreed.size)
        for first in range(0, len(self._outside), together):
            stays &= ~_any(self._can_lead(self._outside[first : first + together], most, pending))
        for core in range(len(self._agreed)):
            stays &= self._holds_around(core, most, pending)
        return stays

    def _can_lead(self, rows: NDArray[np.int64], most: int, pending: int) -> Holding:
        """Whether each of these keywords can become the strongest: [rows, most + 1]."""
        ahead = self._votes.leasts(self._agreed[:, None] - rows, -1, most, pending) > 0
        return ~_any(ahead)

    def _holds_around(self, core: int, most: int, pending: int) -> Holding:
        row = self._agreed[core]
        share = among_counts(self._rule.share, self._votes.total + pending)
        p, q = share.numerator, share.denominator
        rows = np.concatenate(
            ((q * self._agreed - p) * row, (p - q * self._outside) * row, row[None], self._agreed - row)
        )
        agreed, outside = len(self._agreed), len(self._outside)
        replaced = np.array([*repeat(-p, agreed), *repeat(p - q, outside), 0, *repeat(-1, agreed)], np.int64)[:, None]
        leasts = self._votes.leasts(rows, replaced, most, pending)
        near, away = leasts[:agreed], leasts[agreed : agreed + outside]
        own, ahead = leasts[agreed + outside], leasts[agreed + outside + 1 :]
        stays = near > 0
        if self._alone[core]:
            stays[core] = True  # there is no other keyword that these groups say
        holds: Holding = _all(stays) & _all(away >= 0) & (own >= self._rule.min_support) | _any(ahead > 0)
        return holds

    def _wording_stays(self, most: int, pending: int) -> Holding:
        windows = [w.window for w in self._wordings]
        window = majority(windows, self._strongest)
        stays = self._stays(windows, window, None, most, pending)
        if window is not None:
            return stays
        for phrase, place in self._phrases.items():
            row = self._all[place]
            forms = [w.forms.get(phrase) for w in self._wordings]
            form = majority(forms, self._strongest)
            stays &= self._stays(forms, form, row, most, pending)
            if form is None:
                written = [None if form is None else "written" for form in forms]
                stays &= self._stays(written, majority(written, self._strongest), row, most, pending)
        return stays

    def _stays(
        self, said: Sequence[str | None], form: str | None, phrase: Row | None, most: int, pending: int
    ) -> Holding:
        """Whether the majority among these, `form` or none, stays the same.

        A form s is one if 2 f(s) > c(u) for all u. A response with a form of a phrase says that phrase, and one with
        a window says all that was agreed on.
        """
        if form is not None:
            own = np.fromiter((said[first] == form for first in self._firsts), np.int64, self._groups)
            return _all(self._votes.leasts(2 * own - self._all, -1, most, pending) > 0)
        stays = np.ones(most + 1, bool)
        for form in {*said, _UNSAID} - {None}:
            own = np.fromiter((said[first] == form for first in self._firsts), np.int64, self._groups)
            if phrase is None:
                bounds = self._votes.leasts(self._agreed - 2 * own, -1, most, pending)
            else:
                others = self._votes.leasts(self._agreed - 2 * own, -2, most, pending)
                bounds = np.vstack([others, self._votes.leasts(phrase - 2 * own, -1, most, pending)])
            stays &= _any(bounds >= 0)
        return stays


def _all(rows: Holding) -> Holding:
    """Whether all rows hold."""
    found: Holding = np.logical_and.reduce(rows)
    return found


def _any(rows: Holding) -> Holding:
    """Whether any row holds."""
    found: Holding = np.logical_or.reduce(rows)
    return found
