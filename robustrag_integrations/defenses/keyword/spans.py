"""Keywords that can be retained next to corrupted groups."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import combinations, zip_longest


@dataclass(frozen=True)
class Reach:
    """The keywords that can be retained at one threshold, whichever corrupted groups say what.

    Attributes:
        always: W_A, retained whatever the attacker does; sorted.
        contested: W_C, retained or not as the attacker likes; those said most often first.
        one_of: at least one of these is retained; None if that is no condition.
    """

    always: tuple[str, ...]
    contested: tuple[str, ...]
    one_of: frozenset[str] | None = None

    def sets(self) -> Iterator[tuple[str, ...]]:
        """Yield all keyword sets, sorted: those likeliest to fail first, none contested, all, one left out, ..."""
        size = len(self.contested)
        by_size = sorted(range(size + 1), key=lambda n: (min(n, size - n), 0 < n <= size // 2))
        for count in by_size:
            for chosen in combinations(self.contested, count):
                if self.allows(chosen):
                    yield tuple(sorted((*self.always, *chosen)))

    def allows(self, chosen: tuple[str, ...]) -> bool:
        """True if the attacker can have these contested keywords retained, and no others."""
        return self.one_of is None or not self.one_of.isdisjoint((*self.always, *chosen))


@dataclass(frozen=True)
class KeywordSpan:
    """The keywords that can be retained next to m' corrupted groups.

    Attributes:
        reaches: the reachable keywords, one for each threshold that the attacker can bring about.
        unbounded: True if the attacker alone can have any word retained.
        mu: the threshold, the lowest of them.
        counts: c(w) over the untouched groups.
    """

    reaches: tuple[Reach, ...]
    unbounded: bool
    mu: Fraction
    counts: dict[str, int]

    @cached_property
    def always(self) -> tuple[str, ...]:
        """The keywords retained in every case; sorted."""
        return tuple(sorted(frozenset.intersection(*(frozenset(reach.always) for reach in self.reaches))))

    @cached_property
    def contested(self) -> tuple[str, ...]:
        """The keywords retained in some cases; those said most often first."""
        possible = {w for reach in self.reaches for w in (*reach.always, *reach.contested)}.difference(self.always)
        return tuple(sorted(possible, key=lambda w: (-self.counts[w], w)))


def retained_sets(span: KeywordSpan) -> Iterator[tuple[str, ...]]:
    """Yield all keyword sets that can be retained, each once, those likeliest to fail first."""
    seen = set()
    for retained in (found for row in zip_longest(*(reach.sets() for reach in span.reaches)) for found in row):
        if retained is not None and retained not in seen:
            seen.add(retained)
            yield retained
