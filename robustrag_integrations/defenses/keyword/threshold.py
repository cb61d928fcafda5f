"""The paper's threshold, min(alpha n, beta) of n answering sources (Algorithm 1, lines 8-13), and its radius."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from robustrag_integrations.counting import Counted, Holds, worst_case_sums

Rows: TypeAlias = NDArray[np.int64]  # [keywords, sources], or [sources]
Said = Sequence[Collection[str] | None]  # per source its keywords; None for one that abstained or failed


@dataclass(frozen=True)
class Threshold:
    """The number of votes that keeps a keyword, compared exactly.

    Theorem. Let c(w) of n answering votes say w. Replaced sources say what the attacker likes. A kept keyword stays if
    c'(w) >= alpha n' after every attack, or c'(w) >= beta after every one. Another one stays away, one that nobody says
    included, if c'(w) < alpha n' and c'(w) < beta after every attack. All are sums over sources (`counting.py`): of
    q c'(w) - p n', alpha being p/q, a replaced source takes away its own term and adds at worst -p, and against another
    keyword p - q, as alpha <= 1. So the worst sources are those with the largest loss, and no set of sources is
    enumerated. One attack is the worst against all conditions for w, and the radius is exact.

    Attributes:
        alpha: a share of the answering votes, as the decimal number that was written: 0.3 of 10 is 3.
        beta: votes that are enough in any case; None for no such number.
    """

    alpha: Fraction
    beta: int | None

    @classmethod
    def of(cls, alpha: float | Fraction, beta: int | None) -> Threshold:
        """Build the threshold from checked settings: `alpha` as it is written, so that 0.3 of 10 is 3.

        To a millionth: its products with counts then fit machine words.
        """
        exact = alpha if isinstance(alpha, Fraction) else Fraction(str(alpha))
        return cls(exact.limit_denominator(1_000_000), beta)

    @property
    def in_words(self) -> str:
        """The condition for keeping a keyword."""
        most = "" if self.beta is None else f", {self.beta} at most"
        return f"{float(self.alpha):g} of those that answer{most}"

    def needed(self, answering: int) -> int:
        """Return the smallest number of votes that keeps a keyword, of so many that answer."""
        p, q = self.alpha.numerator, self.alpha.denominator
        share = -(-p * answering // q)
        return max(share if self.beta is None else min(share, self.beta), 1)

    def _stay(self, rows: Rows, answering: Rows, most: int, pending: int) -> Holds:
        p, q = self.alpha.numerator, self.alpha.denominator
        reached = worst_case_sums(q * rows - p * answering, -p, most, pending) >= 0
        count = worst_case_sums(rows, 0, most, pending)
        if self.beta is not None:
            reached |= count >= self.beta
        holds: Holds = np.all(reached & (count >= 1), axis=0)
        return holds

    def _stay_away(self, rows: Rows, answering: Rows, most: int, pending: int) -> Holds:
        p, q = self.alpha.numerator, self.alpha.denominator
        missed = worst_case_sums(p * answering - q * rows, p - q, most, pending) > 0
        count = -worst_case_sums(-rows, -1, most, pending)
        if self.beta is not None:
            missed &= count < self.beta
        holds: Holds = np.all(missed | (count < 1), axis=0)
        return holds


@dataclass(frozen=True)
class Tally(Counted):
    """The keywords of the sources, counted."""

    said: tuple[frozenset[str] | None, ...]
    threshold: Threshold

    @classmethod
    def of(cls, said: Said, threshold: Threshold) -> Tally:
        """Build the tally."""
        return cls(tuple(None if keywords is None else frozenset(keywords) for keywords in said), threshold)

    @cached_property
    def counts(self) -> Mapping[str, int]:
        """c(w), the votes of each keyword."""
        return Counter(keyword for keywords in self.said for keyword in keywords or ())

    @cached_property
    def answering(self) -> int:
        """The votes of sources that answer (n)."""
        return sum(keywords is not None for keywords in self.said)

    @cached_property
    def needed(self) -> int:
        """The smallest number of votes that keeps a keyword."""
        return self.threshold.needed(self.answering)

    @cached_property
    def kept(self) -> tuple[str, ...]:
        """The keywords that are kept, sorted."""
        return tuple(sorted(keyword for keyword, count in self.counts.items() if count >= self.needed))

    def holding(self, most: int, pending: int = 0, *, verbatim: bool = False) -> Holds:
        """Tell for each r whether the same keywords are kept."""
        sayers: dict[str, list[int]] = {}
        for source, keywords in enumerate(self.said):
            for keyword in keywords or ():
                sayers.setdefault(keyword, []).append(source)
        own = {tuple(sayers[keyword]) for keyword in self.kept}
        others = {(), *(tuple(sources) for keyword, sources in sayers.items() if keyword not in self.kept)}
        answering = np.array([keywords is not None for keywords in self.said], np.int64)
        sources, rule = len(self.said), self.threshold
        holds: Holds = rule._stay(_rows(own, sources), answering, most, pending)
        holds &= rule._stay_away(_rows(others, sources), answering, most, pending)
        holds[0] |= pending == 0
        return holds


def _rows(sayers: Collection[tuple[int, ...]], sources: int) -> Rows:
    """Return [keywords, sources]: 1 for each source that says the keyword."""
    rows = np.zeros((len(sayers), sources), np.int64)
    for row, said_by in zip(rows, sayers, strict=True):
        row[list(said_by)] = 1
    return rows
