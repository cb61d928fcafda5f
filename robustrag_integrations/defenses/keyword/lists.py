"""Lists of words that can be shown next to corrupted groups."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice, product, zip_longest
from random import Random

from robustrag_integrations.defenses.agreement.agreed import Worded, deciding_keys, forms_of, grounds_of, possible_forms
from robustrag_integrations.defenses.keyword.spans import KeywordSpan, Reach
from robustrag_integrations.keywords.runs import ReplyKeys, is_part

_MOST_STEPS = 50_000  # sets of keys and forms that are gone through, many of which may give the same list


@dataclass(frozen=True)
class PossibleList:
    """Words that can be shown, and a set of retained keys that yields them."""

    words: tuple[Worded, ...]
    retained: tuple[str, ...]

    @property
    def shown(self) -> tuple[str, ...]:
        """The words as the final prompt lists them."""
        return forms_of(self.words)


@dataclass(frozen=True)
class ListSpan:
    """The lists that can be shown.

    Attributes:
        span: the keywords that can be retained.
        replies: the replies of the untouched groups.
        corrupted: number of corrupted groups.
        as_counted: True if keys are shown as they are counted, all of them.
    """

    span: KeywordSpan
    replies: Sequence[ReplyKeys | None]
    corrupted: int
    as_counted: bool

    def lists(self, budget: int) -> Iterator[PossibleList | None]:
        """Yield the words of each list once, those likeliest to fail first; None, as the last, if there may be more.

        Args:
            budget: number of model calls for them.

        Raises:
            Unbounded: corrupted groups alone can decide how a key is written.
        """
        seen: set[tuple[Worded, ...]] = set()
        steps = max(_MOST_STEPS, 2 * budget)
        for found in islice(self._each(), steps):
            if found.words not in seen:
                seen.add(found.words)
                yield found
        if next(islice(self._each(), steps, None), None) is not None:
            yield None

    def sampled(self, size: int, random: Random) -> Iterator[PossibleList]:
        """Draw lists at random: a threshold, and each contested keyword in or out."""
        for _ in range(size):
            reach = random.choice(self.span.reaches)
            chosen = tuple(w for w in reach.contested if random.random() < 0.5)
            if not reach.allows(chosen):
                chosen = reach.contested
            yield random.choice(list(islice(self._shown((*reach.always, *chosen)), 100)))

    def _each(self) -> Iterator[PossibleList]:
        rows = zip_longest(*(self._of_reach(reach) for reach in self.span.reaches))
        return (found for row in rows for found in row if found is not None)

    def _of_reach(self, reach: Reach) -> Iterator[PossibleList]:
        if not self.as_counted:
            reach = without_parts(reach)
        for retained in reach.sets():
            yield from self._shown(retained)

    def _shown(self, retained: Sequence[str]) -> Iterator[PossibleList]:
        kept = tuple(sorted(retained))
        if self.as_counted:
            yield PossibleList(tuple(Worded(key, key, (), (True,)) for key in kept), kept)
            return
        keys = deciding_keys(kept)
        for forms in product(*(possible_forms(key, self.replies, self.corrupted) for key in keys)):
            words = (
                Worded(key, form, (), grounds_of(key, self.replies)) for key, form in zip(keys, forms, strict=True)
            )
            yield PossibleList(tuple(words), kept)


def without_parts(reach: Reach) -> Reach:
    """Return a reach without contested keys that are part of one retained in every case: they are never shown.

    Where one of them may be what raises the threshold, that condition goes: more sets are then looked at.
    """
    idle = frozenset(key for key in reach.contested if any(is_part(key, kept) for kept in reach.always))
    one_of = None if reach.one_of is None or reach.one_of & idle else reach.one_of
    return replace(reach, contested=tuple(key for key in reach.contested if key not in idle), one_of=one_of)
