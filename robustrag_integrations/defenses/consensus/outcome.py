"""The outcome of a count of whole answers: the text that is shown, and the radius within which it stays.

An answer is shown in the wording that most of its groups use: a reply's own text, of which nothing is cut. Two wordings
of one key differ in what means nothing (`replies/keys.py`); `radius` is about keys, `radius_verbatim` about letters.

Where no answer is agreed on, people may hear a *sole source*: the one group of whose answer the model is sure. It has
the radius 0 and goes into no prompt, so that nothing rests on confidence but what people see.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from robustrag_integrations.answers.links import without_links
from robustrag_integrations.defenses.agreement.linear_forms import Holding, Votes, largest_radius
from robustrag_integrations.defenses.agreement.plurality import Count, Rule, Scores
from robustrag_integrations.defenses.consensus.reading import Said
from robustrag_integrations.plans.asking import Reading

_MOST_COUNTS = 200  # of answers in the evidence; a hostile set of groups may give many
_LONGEST_SOLE = 1_000  # characters of a sole source's answer that are shown


@dataclass(frozen=True)
class Outcome:
    """What groups agree on.

    Attributes:
        said: per group what it says; None for an abstention, a failure, a copy, or a group that may still say anything.
        count: the count of the groups that have a vote.
        heard: the places of these among all.
    """

    said: tuple[Said | None, ...]
    count: Count[str]
    heard: tuple[int, ...]

    @classmethod
    def of(cls, readings: Sequence[Reading[Said]], rule: Rule, weights: Sequence[int] | None = None) -> Outcome:
        """Count readings with their votes (None: one each); a group without a vote is left out."""
        votes = list(weights) if weights is not None else [1] * len(readings)
        heard = tuple(place for place, weight in enumerate(votes) if weight)
        said = tuple(reading.found for reading in readings)
        keys = tuple(None if (own := said[place]) is None or not own.counts else own.key for place in heard)
        return cls(said, Count(keys, tuple(votes[place] for place in heard), rule), heard)

    def given(self, place: int) -> frozenset[str]:
        """The key of the answer that a group gives, if any."""
        own = self.said[place]
        return frozenset([own.key] if own is not None and own.counts else [])

    def scored(self, scores: Scores[str]) -> Outcome:
        """Return the outcome once some keys were scored by all groups."""
        own = {key: [row[place] for place in self.heard] for key, row in scores.items()}
        return replace(self, count=replace(self.count, scores=own))

    @cached_property
    def text(self) -> str:
        """The answer; empty if there is none."""
        if self.count.winner is not None:
            forms = self._forms
            return min(forms, key=lambda form: (-forms[form], len(form), form))
        if self.sole is None:
            return ""
        whole = without_links(self.sole.text[:_LONGEST_SOLE])
        return whole + "…" * (len(self.sole.text) > _LONGEST_SOLE)

    @cached_property
    def sole(self) -> Said | None:
        """What the one group says of which the model is sure, where there is no answer, nor a tie of supported ones.

        Of replies whose confidence is not known, each counts as sure: then it is the one group that answers.
        """
        if self.count.winner is not None or self.count.tied or len(self.heard) < len(self.said):
            return None
        sure = [own for own in self.said if own is not None and own.counts and own.is_sure]
        return sure[0] if len(sure) == 1 else None

    @property
    def key(self) -> str | None:
        """The key of the text."""
        return self.count.winner if self.count.winner is not None else self.sole.key if self.sole else None

    @property
    def _forms(self) -> Counter[str]:
        """The votes of each wording of the winner."""
        votes: Counter[str] = Counter()
        for place, weight in zip(self.heard, self.count.weights, strict=True):
            if (own := self.said[place]) is not None and own.counts and own.key == self.count.winner:
                votes[own.text] += weight
        return votes

    def holding(self, votes: Votes, most: int, pending: int = 0, *, verbatim: bool = False) -> Holding:
        """Tell for each r up to `most`, or each budget of the votes, whether the answer, or its letters, stay."""
        holds = self.count.holding(votes, most, pending)
        if verbatim and self.count.winner is not None:
            holds &= self._wording_holds(votes, most, pending)
        return holds

    def _wording_holds(self, votes: Votes, most: int, pending: int) -> Holding:
        """The shown wording stays ahead of the others, or level where it comes first; of a new one nothing is known."""
        written = [
            own.text if (own := self.said[place]) is not None and own.counts and own.key == self.count.winner else None
            for place in self.heard
        ]
        shown = np.array([form == self.text for form in written], np.int64)
        others = [form for form in self._forms if form != self.text]
        rows = np.array([shown, *(shown - np.array([form == other for form in written], np.int64) for other in others)])
        wins_ties = np.array([False, *((len(self.text), self.text) < (len(other), other) for other in others)])
        holds: Holding = (votes.leasts(rows, -1, most, pending) + wins_ties[:, None] > 0).all(axis=0)
        holds[0] |= pending == 0
        return holds

    def radius(self, pending: int = 0, *, verbatim: bool = False) -> int:
        """Return how many votes can be replaced while the answer stays; -1 if pending ones may change it.

        0 without an answer, and for a sole source.
        """
        if self.count.winner is None:
            return -1 if pending else 0
        votes = Votes(len(self.heard), self.count.weights)
        return largest_radius(lambda most: self.holding(votes, most, pending, verbatim=verbatim), votes.total)

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
