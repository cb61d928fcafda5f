"""What was counted, as reports and statuses read it."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True)
class KeywordTally:
    """Keyword counts over the answering groups.

    Attributes:
        counts: c(w), how many responses contain keyword w.
        answering: n, how many groups did not abstain.
        mu: the threshold: the least count of what is retained.
        retained: the keywords that reach it, sorted.
    """

    counts: dict[str, int]
    answering: int
    mu: Fraction
    retained: tuple[str, ...]
