"""The radius of a consensus.

All of it is decided by comparisons p c(x) > q c(y) of how many groups say two things, which are sums over groups.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from itertools import accumulate

import numpy as np

from robustrag_integrations.defenses.agreement.linear_forms import Row, Votes
from robustrag_integrations.defenses.consensus.counting import (
    ConsensusRule,
    Wording,
    majority,
    shown_text,
)

_UNSAID = "\0"


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
        said = [frozenset(keyword_sets[first] or ()) for first in self._firsts]
        sayers: dict[str, int] = {}  # the groups that say a keyword, as bits
        for group, words in enumerate(said):
            for word in words:
                sayers[word] = sayers.get(word, 0) | 1 << group
        owners = Counter(sayers.values())
        rows: dict[int, Row] = {
            bits: np.fromiter((bits >> group & 1 for group in range(self._groups)), np.int64, self._groups)
            for bits in owners
        }
        inside = {word: bits for word, bits in sayers.items() if word in agreed}
        outside = {bits for word, bits in sayers.items() if word not in agreed}
        keys = list(dict.fromkeys(inside.values()))
        unsaid = np.zeros((1, self._groups), np.int64)
        self._agreed = np.array([rows[key] for key in keys]).reshape(len(keys), self._groups)
        self._alone = np.array([owners[key] == 1 for key in keys], bool)
        self._outside = np.vstack([*(rows[key] for key in sorted(outside)), unsaid])
        self._all = np.vstack([*rows.values(), unsaid])
        self._phrases = {p: rows[inside[p]] for p in phrases}
        self._wordings = wordings
        self._strongest = int(self._votes.sums(self._all).max())
        self._shown = shown_text(phrases, wordings, self._strongest)

    def radius(self, pending: int = 0) -> int:
        """The largest r that `holds`; -1 if not even the pending groups can be awaited."""
        r = -1
        while r < self._votes.total and self.holds(r + 1, pending):
            r += 1
        return r

    def holds(self, r: int, pending: int = 0) -> bool:
        """Whether the text stays when r groups are replaced and `pending` more, not counted yet, say anything."""
        if r == 0 and pending == 0:
            return True
        if not len(self._agreed):
            return False
        return self._agreed_stays(r, pending) and self._wording_stays(r, pending)

    def _agreed_stays(self, r: int, pending: int) -> bool:
        """Whether the same keywords are agreed on, whichever keyword becomes the strongest.

        A keyword cannot become the strongest if an agreed one stays ahead of it: c(u) > c(k). Next to a strongest
        keyword k, another one w stays if q c(k, w) > p c(k), and e stays away if q c(k, e) <= p c(k), where c(k, w) is
        how many groups say both.
        """
        if any(self._can_lead(row, r, pending) for row in self._outside):
            return False
        return all(self._holds_around(core, r, pending) for core in range(len(self._agreed)))

    def _can_lead(self, row: Row, r: int, pending: int) -> bool:
        return not (self._votes.least(self._agreed - row, -1, r, pending) > 0).any()

    def _holds_around(self, core: int, r: int, pending: int) -> bool:
        row = self._agreed[core]
        if not self._can_lead(row, r, pending):
            return True
        p, q = self._rule.share.numerator, self._rule.share.denominator
        stays = self._votes.least((q * self._agreed - p) * row, -p, r, pending) > 0
        if self._alone[core]:
            stays[core] = True  # there is no other keyword that these groups say
        away = self._votes.least((p - q * self._outside) * row, p - q, r, pending) >= 0
        enough = self._votes.least(row, 0, r, pending) >= self._rule.min_support
        return bool(stays.all() and away.all() and enough)

    def _wording_stays(self, r: int, pending: int) -> bool:
        windows = [w.window for w in self._wordings]
        if not self._stays(windows, None, r, pending):
            return False
        if self._shown.window:
            return True
        for phrase, row in self._phrases.items():
            forms = [w.forms.get(phrase) for w in self._wordings]
            if not self._stays(forms, row, r, pending):
                return False
            if majority(forms, self._strongest) is None:
                written = [None if form is None else "written" for form in forms]
                if not self._stays(written, row, r, pending):
                    return False
        return True

    def _stays(self, said: Sequence[str | None], phrase: Row | None, r: int, pending: int) -> bool:
        """Whether the majority among these stays the same, or stays missing.

        A form s is one if 2 f(s) > c(u) for all u. A response with a form of a phrase says that phrase, and one with
        a window says all that was agreed on.
        """
        if (form := majority(said, self._strongest)) is not None:
            own = np.fromiter((said[first] == form for first in self._firsts), np.int64, self._groups)
            return bool((self._votes.least(2 * own - self._all, -1, r, pending) > 0).all())
        for form in {*said, _UNSAID} - {None}:
            own = np.fromiter((said[first] == form for first in self._firsts), np.int64, self._groups)
            if phrase is None:
                bounds = self._votes.least(self._agreed - 2 * own, -1, r, pending)
            else:
                others = self._votes.least(self._agreed - 2 * own, -2, r, pending)
                bounds = np.append(others, self._votes.least(phrase - 2 * own, -1, r, pending))
            if bounds.max() < 0:
                return False
        return True
