"""A quota of sources: the best few passages of each of the best sources, fetching more until there are enough.

One long document, or one that was planted in many pieces, otherwise fills a ranking and leaves nobody to outvote it.
Pure; whoever holds a retriever drives it, synchronously or not.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

from robustrag_integrations._util.checks import check_at_least
from robustrag_integrations._util.words import count_of
from robustrag_integrations.grouping.passages import Source
from robustrag_integrations.grouping.warnings import FEW

T = TypeVar("T")

SHORTAGE = "robustrag_shortage"  # the entry of metadata that says why there are too few sources

_GROWTH = 4  # times as many passages in the next round: few rounds, since a retriever may ask a model in each


@dataclass(frozen=True)
class SourceQuota:
    """The number of sources that are wanted, with at most `per_origin` passages of each.

    A retriever is never asked for more than `max_passages` at once.
    """

    sources: int = 10
    per_origin: int = 2
    max_passages: int = 1000

    def __post_init__(self) -> None:
        check_at_least(1, sources=self.sources, per_origin=self.per_origin, max_passages=self.max_passages)
        if self.max_passages < self.sources:
            raise ValueError(f"max_passages={self.max_passages} cannot hold sources={self.sources}")


class Shortage(str):
    """The reason why a retriever found fewer sources than were wanted, kept in the metadata of what it found.

    A type of its own, so that no text that an attacker put into a store is taken for it.
    """

    __slots__ = ()


Gathering: TypeAlias = Generator[int, Sequence[T], tuple[list[T], Shortage | None]]
"""Yields numbers of passages and is sent those that were found; its result are those that were chosen."""


def choose(places: Sequence[int], sources: int, per_origin: int) -> list[int]:
    """Return the ranks of the best `per_origin` passages of each of the best `sources` origins, in order.

    `places` is per passage, best first, the number of its origin.
    """
    taken: dict[int, int] = {}
    chosen = []
    for rank, place in enumerate(places):
        count = taken.get(place, 0)
        if count < per_origin and (count or len(taken) < sources):
            taken[place] = count + 1
            chosen.append(rank)
    return chosen


def gather(
    quota: SourceQuota, places_of: Callable[[Sequence[T]], Sequence[int]], *, exact: bool = True
) -> Gathering[T]:
    """Fetch more until there are enough sources: four times as many in each round, up to `max_passages`.

    `places_of` gives per item the number of its origin. Fewer passages than were asked for mean that there are no more,
    if `exact`; not where a retriever drops some after it has found them: a flood by one source may hide all others.
    """
    k = min(2 * quota.sources * quota.per_origin, quota.max_passages)
    while True:
        items = yield k
        places = places_of(items)
        chosen = choose(places, quota.sources, quota.per_origin)
        count = len({places[rank] for rank in chosen})
        ended = (exact and len(items) < k) or k == quota.max_passages
        if count < quota.sources and not ended:
            k = min(k * _GROWTH, quota.max_passages)
            continue
        shortage = None
        if count < quota.sources:
            found = f"found {count} of the {quota.sources} sources wanted, in {count_of(len(items), 'passage')}"
            shortage = Shortage(f"{found}; the retriever has no more, or keeps them back (max_passages, a reranker)")
        return [items[rank] for rank in chosen], shortage


def few_sources_warning(sources: Sequence[Source], default: int, how: str) -> str | None:
    """Warn of an answer from too few sources to outvote a lie, or tell what the retriever reported.

    `default` is the number of passages that the framework's retrievers find unless told otherwise, `how` a way to tell.
    """
    reported = (p.metadata.get(SHORTAGE) for source in sources for p in source.passages)
    if said := next((str(found) for found in reported if isinstance(found, Shortage)), None):
        return said
    passages = sum(len(source.passages) for source in sources)
    if not sources or (len(sources) >= FEW and passages > default):
        return None
    return (
        f"found {count_of(passages, 'passage')} of {count_of(len(sources), 'source')}; ask for 10 or more: {how}, or "
        "DiverseRetriever(retriever, sources=10)"
    )
