"""Which lists of keywords the final prompt can hold next to corrupted groups."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice, zip_longest
from random import Random

from robustrag_integrations.defenses.keyword.shown import is_mark, possible_lists, settled, shown_keywords
from robustrag_integrations.defenses.keyword.spans import KeywordSpan, Reach

_MOST_STEPS = 50_000  # keyword sets and forms that are gone through, many of which may give the same list


@dataclass(frozen=True)
class PossibleList:
    """A list, and a set of retained keywords that gives it."""

    shown: tuple[str, ...]
    retained: tuple[str, ...]


@dataclass(frozen=True)
class ListSpan:
    """The lists that a span over keywords and marks can give.

    A mark is given only by a group that says its keyword, so that every mark is retained or not independently of the
    others, and none makes a strongest count that its keyword does not have.
    """

    span: KeywordSpan

    def lists(self, budget: int) -> Iterator[PossibleList | None]:
        """Each list once, those likeliest to fail first; None, as the last, if there may be more beyond the budget.

        Args:
            budget: how many model calls there are for them.
        """
        seen: set[tuple[str, ...]] = set()
        steps = max(_MOST_STEPS, 2 * budget)
        for found in islice(self._each(), steps):
            if found.shown not in seen:
                seen.add(found.shown)
                yield found
        if next(islice(self._each(), steps, None), None) is not None:
            yield None

    def _each(self) -> Iterator[PossibleList]:
        rows = zip_longest(*(_of_reach(reach) for reach in self.span.reaches))
        return (found for row in rows for found in row if found is not None)

    def sampled(self, size: int, random: Random) -> Iterator[PossibleList]:
        """Lists drawn at random: a threshold, and what is contested at it in or out."""
        for _ in range(size):
            reach = random.choice(self.span.reaches)
            chosen = tuple(w for w in reach.contested if random.random() < 0.5)
            if not reach.allows(chosen):
                chosen = reach.contested
            kept = (*reach.always, *chosen)
            yield PossibleList(shown_keywords(kept), tuple(sorted(w for w in kept if not is_mark(w))))


def _of_reach(reach: Reach) -> Iterator[PossibleList]:
    marks = [[m for m in part if is_mark(m)] for part in (reach.always, reach.contested)]
    words = [tuple(w for w in part if not is_mark(w)) for part in (reach.always, reach.contested)]
    always, contested = words
    idle = settled(contested, always, (*marks[0], *marks[1])) if reach.one_of is None else frozenset()
    kept = replace(reach, always=always, contested=tuple(w for w in contested if w not in idle))
    for retained in kept.sets():
        for shown in possible_lists(retained, *marks):
            yield PossibleList(shown, retained)
