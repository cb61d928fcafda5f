"""The outcome of a count of whole answers: the text that is shown, and what holds it when groups are replaced.

An answer is shown in the wording that most of its groups use: a reply's own text, of which nothing is cut. Two wordings
of one key differ in what means nothing (`replies/keys.py`); the radius is about keys, that of the letters about both.

Where no answer is agreed on, people may hear a *sole source*: the one group of whose answer the model is sure. It has
the radius 0 and goes into no prompt, so that nothing rests on confidence but what people see.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from robustrag_integrations import core
from robustrag_integrations.answers.wording import without_links
from robustrag_integrations.defenses.agreement.linear_forms import Counted, HoldsPerBudget, Votes
from robustrag_integrations.defenses.agreement.plurality import Count, Rule, Scores
from robustrag_integrations.defenses.consensus.settings import Said

_MOST_COUNTS = 200  # of answers in the evidence; a hostile set of groups may give many
_LONGEST_SOLE = 1_000  # characters of a sole source's answer that are shown


@dataclass(frozen=True)
class Outcome(Counted):
    """What groups agree on: per group what it says, None for nothing that counts; its votes; and the count of them."""

    said: tuple[Said | None, ...]
    weights: tuple[int, ...]
    count: Count[str]
    has_wordings: ClassVar[bool] = True

    @classmethod
    def of(cls, found: Sequence[Said | None], rule: Rule, weights: Sequence[int] | None = None) -> Outcome:
        """Count what groups say with their votes (None: one each)."""
        said, votes = tuple(found), tuple(weights) if weights is not None else (1,) * len(found)
        return cls(said, votes, core.count(map(counting, said), rule, votes))

    def scored(self, scores: Scores[str]) -> Outcome:
        """Return the outcome once some keys were scored by all groups."""
        return replace(self, count=replace(self.count, scores=scores))

    @cached_property
    def text(self) -> str:
        """The answer; empty if there is none."""
        if self.count.winner is not None:
            return core.commonest(self._wordings)
        if self.sole is None:
            return ""
        whole = without_links(self.sole.text[:_LONGEST_SOLE])
        return whole + "…" * (len(self.sole.text) > _LONGEST_SOLE)

    @cached_property
    def sole(self) -> Said | None:
        """What the one group says of which the model is sure, where there is no answer, nor a tie of supported ones.

        Of replies whose confidence is not known, each counts as sure: then it is the one group that answers.
        """
        if self.count.winner is not None or self.count.tied or not all(self.weights):
            return None
        sure = [own for own in self.said if own is not None and own.counts and own.is_sure]
        return sure[0] if len(sure) == 1 else None

    @property
    def key(self) -> str | None:
        """The key of the text."""
        return self.count.winner if self.count.winner is not None else self.sole.key if self.sole else None

    @property
    def _wordings(self) -> Counter[str]:
        """The votes of each wording of the winner."""
        return core.wordings(map(counting, self.said), self.count.winner, self.weights)

    def holding(self, votes: Votes, most: int, pending: int = 0, *, verbatim: bool = False) -> HoldsPerBudget:
        """Tell for each r, or each budget of the votes, whether the answer, or its letters, stay.

        The shown wording has to stay ahead of the others, or level where it comes first. Of one that nobody writes yet
        nothing is known.
        """
        holds = self.count.holding(votes, most, pending)
        if verbatim and self.count.winner is not None:
            written = [own.text if own and own.key == self.count.winner else None for own in map(counting, self.said)]
            shown = np.array([form == self.text for form in written], np.int64)
            others = [form for form in self._wordings if form != self.text]
            rows = [shown - np.array([form == other for form in written], np.int64) for other in others]
            wins_ties = np.array([False, *((len(self.text), self.text) < (len(other), other) for other in others)])
            ahead = votes.worst_case_sums(np.array([shown, *rows]), -1, most, pending) + wins_ties[:, None] > 0
            holds &= ahead.all(axis=0)
            holds[0] |= pending == 0
        return holds

    @property
    def evidence(self) -> dict[str, Any]:
        """The votes of each answer, in a wording of it, and of how many there are."""
        wording: dict[str, str] = {}
        for own in self.said:
            if own is not None:
                wording.setdefault(own.key, own.text)
        counts: dict[str, int] = {}
        for key, votes in list(self.count.votes.items())[:_MOST_COUNTS]:
            counts.setdefault(self.text if key == self.count.winner else wording[key], votes)
        found: dict[str, Any] = {"counts": counts, "answering": sum(self.count.votes.values())}
        if self.key is not None:
            found["support"] = self.count.votes.get(self.key, 0)
        if self.count.by_runoff:
            found["runoff"] = True
        if self.said and all(own is None or own.confidence is None for own in self.said):
            found["confidence"] = "unknown"
        return found


def counting(own: Said | None) -> Said | None:
    """Return what a group says if it has a vote."""
    return own if own is not None and own.counts else None
