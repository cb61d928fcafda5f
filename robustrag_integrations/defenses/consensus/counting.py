"""What a consensus is: what the groups of the strongest keyword say together, and the wording that most share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from robustrag_integrations.defenses.agreement.tally import votes_for


@dataclass(frozen=True)
class ConsensusRule:
    """Which keywords make the answer.

    Attributes:
        share: a keyword is agreed on if more than this share of the strongest keyword's groups say it, too; in
            [1/2, 1).
        min_support: how many groups must say the strongest keyword; below, there is no answer.
    """

    share: Fraction
    min_support: int

    def reached(self, together: int, strongest: int) -> bool:
        """Whether this count is more than `share` of the strongest keyword's, compared exactly."""
        return self.share.denominator * together > self.share.numerator * strongest


@dataclass(frozen=True)
class Wording:
    """How one group words the agreed keywords.

    Attributes:
        window: the shortest part of its response that holds all of them; None if it does not say all.
        forms: per agreed phrase that stands in its response, how it is written there.
    """

    window: str | None = None
    forms: Mapping[str, str] = field(default_factory=dict)


def strongest_keyword(counts: Mapping[str, int]) -> str | None:
    """The keyword that most groups say; among equals the one of most words, then characters, then the smaller one."""
    return min(counts, key=lambda w: (-counts[w], -len(w.split()), -len(w), w), default=None)


def agreed_keywords(keyword_sets: Sequence[Collection[str] | None], rule: ConsensusRule) -> frozenset[str]:
    """The strongest keyword, and what more than `share` of its groups say with it.

    What other groups say does not enter, however many they are. None if the strongest has less than `min_support`.
    """
    counts = votes_for(keyword_sets)
    core = strongest_keyword(counts)
    if core is None or counts[core] < rule.min_support:
        return frozenset()
    together = votes_for([said for said in keyword_sets if said is not None and core in said])
    return frozenset(w for w, count in together.items() if rule.reached(count, counts[core]))


def shown_text(phrases: Sequence[str], wordings: Sequence[Wording], strongest: int) -> str:
    """The text of a consensus: the window that most groups share, else the phrases one by one; empty without any.

    Args:
        phrases: the agreed phrases, none within another one, in the order of a list.
        wordings: how each group words them.
        strongest: how many groups say the strongest keyword.
    """
    if not phrases:
        return ""
    if (window := majority([w.window for w in wordings], strongest)) is not None:
        return window
    return list_text(phrases, [_part(phrase, wordings, strongest) for phrase in phrases])


def list_text(phrases: Sequence[str], parts: Sequence[str | None]) -> str:
    """The agreed phrases one by one.

    Args:
        phrases: all of them, as they are counted.
        parts: how each is shown; None for one that is not. If none is, all are as they are counted.
    """
    shown = list(dict.fromkeys(part for part in parts if part is not None)) or list(phrases)
    folded = [part.casefold() for part in shown]
    return ", ".join(
        part
        for i, part in enumerate(shown)
        if not any(folded[i] in other and (folded[i] != other or j < i) for j, other in enumerate(folded) if j != i)
    )


def _part(phrase: str, wordings: Sequence[Wording], strongest: int) -> str | None:
    """How a list shows a phrase: as most write it, else as it is counted; not at all if few write it in any way."""
    forms = [w.forms.get(phrase) for w in wordings]
    if (form := majority(forms, strongest)) is not None:
        return form
    return phrase if 2 * sum(form is not None for form in forms) > strongest else None


def majority(said: Sequence[str | None], strongest: int) -> str | None:
    """What more than half as many groups say as say the strongest keyword; None if nothing is said so often."""
    counts = Counter(text for text in said if text is not None)
    return next((text for text, count in counts.items() if 2 * count > strongest), None)
