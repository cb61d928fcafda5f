"""The benign sources that an attacker leaves untouched (paper, appendix "Generalizing to larger group sizes").

A list of retrieved passages has room for `top_k`. Nothing is ejected until it is full: an attacker who adds to a
shorter list shifts passages into other sources, but removes none. In a list that is full, what is put in pushes the
lowest-ranked benign passages out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal, TypeAlias, get_args

from robustrag_integrations._util.checks import is_whole_number
from robustrag_integrations.grouping.passages import (
    ORIGIN,
    PASSAGE,
    SITE,
    GroupBy,
    Keys,
    Passage,
    Source,
    as_passages,
    grouping_of,
    passage_keys,
)

AttackMode = Literal["injection", "modification"]
MOST_CASES = 100_000
_MOST_COMPARED = 3_000  # leaving out cases that others cover only saves time, and with more it would cost more

_Ranks: TypeAlias = tuple[int, ...]
_Split: TypeAlias = tuple[tuple[_Ranks, ...], int]  # the ranks in each untouched source; number of corrupted ones


@dataclass(frozen=True)
class BenignCase:
    """One possible outcome of an attack: the untouched sources, and m', how many others there are.

    `ranks` are, per source, those (0-based) of its passages in the clean retrieval.
    """

    sources: tuple[Source, ...]
    ranks: tuple[_Ranks, ...]
    corrupted: int

    @property
    def total(self) -> int:
        """m, all sources."""
        return len(self.sources) + self.corrupted


def benign_source_cases(
    passages: Iterable[str | Passage],
    corruption_size: int,
    *,
    attack: AttackMode = "injection",
    passages_per_source: int = 1,
    by: GroupBy | None = None,
    top_k: int | None = None,
) -> tuple[BenignCase, ...]:
    """Return all distinct sets of untouched sources, each with its number of corrupted ones (BenignSourceCases).

    A case is left out when another one covers it: with fewer untouched sources and as many corrupted ones more, its
    attacker can imitate the missing sources word for word. The attacker is taken to choose the origin or key of every
    passage of theirs: each joins (and corrupts) a source, or stands for a new one. Only where no clean passage names an
    origin, theirs are taken to name none either: each passage is a source.

    Args:
        passages: the clean retrieval, best first.
        corruption_size: k', how many passages the attacker controls at most; 0 for no attacker.
        attack: `injection` adds passages anywhere; `modification` also removes as many of the attacker's choice.
        passages_per_source: omega.
        by: the criterion by which passages are grouped (`isolate`).
        top_k: number of passages that the retrieval returns when it finds enough; None: as many as there are here.

    Raises:
        ValueError: an invalid argument, or there are more than 100,000 ways to attack.
    """
    items = as_passages(passages)
    by = grouping_of(passages_per_source, by)
    limit = check_attack(len(items), corruption_size, attack, top_k)
    keys = passage_keys(items, by)
    found: dict[tuple[_Ranks, ...], int] = {}
    tried = 0
    for kept, injected in _retrievals(len(items), corruption_size, attack, limit):
        if by == PASSAGE:
            splits = _adjacent_sources(kept, injected, passages_per_source)
        elif by in (ORIGIN, SITE):
            splits = _origin_sources(kept, injected, keys)
        else:
            splits = _keyed_sources(kept, injected, keys)
        for sources, corrupted in splits:
            tried += 1
            if tried > MOST_CASES:
                raise ValueError(
                    f"corruption_size={corruption_size} on {len(items)} passages can be placed in more than "
                    f"{MOST_CASES} ways; certify a smaller corruption_size or fewer passages"
                )
            found[sources] = max(found.get(sources, 0), corrupted)
    return tuple(
        BenignCase(
            tuple(Source(i, tuple(items[rank] for rank in ranks)) for i, ranks in enumerate(sources)),
            sources,
            found[sources],
        )
        for sources in _uncovered(found)
    )


def check_attack(passages: int, corruption_size: int, attack: AttackMode, top_k: int | None) -> int:
    """Return the length of a full retrieval; raise ValueError for an invalid argument."""
    check_size(corruption_size)
    if attack not in get_args(AttackMode):
        raise ValueError(f"attack={attack!r} is unknown; use one of {', '.join(map(repr, get_args(AttackMode)))}")
    if top_k is None:
        return passages
    if not is_whole_number(top_k, max(passages, 1)):
        raise ValueError(f"top_k={top_k!r} must be a whole number of at least {max(passages, 1)}, the passages given")
    return top_k


def check_size(corruption_size: object) -> None:
    """Raise ValueError for what is no number of corrupted passages."""
    if not is_whole_number(corruption_size, 0):
        raise ValueError(
            f"corruption_size={corruption_size!r:.60} must be a whole number of corrupted passages, 0 or more"
        )


def _retrievals(count: int, size: int, attack: AttackMode, limit: int) -> Iterator[tuple[_Ranks, int]]:
    """Ranks of the benign passages that stay, and how many corrupted ones stand among them.

    In a full list a weaker attack is covered by the strongest one, which copies what the weaker one leaves in place.
    """
    full = count == limit
    most = min(size, count)
    removals = [0] if attack == "injection" else ([most] if full else range(most + 1))
    injections = [min(size, limit)] if full else range(min(size, limit) + 1)
    for removed in removals:
        for gone in combinations(range(count), removed):
            left = tuple(rank for rank in range(count) if rank not in gone)
            for injected in injections:
                length = min(limit, len(left) + injected)
                yield left[: length - injected], injected


def _adjacent_sources(kept: _Ranks, injected: int, size: int) -> Iterator[_Split]:
    """Untouched sources for every number of corrupted passages in every source.

    Where in its source a corrupted passage stands makes no difference to the other sources.
    """
    length = len(kept) + injected
    if size == 1:
        yield tuple((rank,) for rank in kept), injected
        return
    yield from _filled(kept, injected, [min(size, length - at) for at in range(0, length, size)])


def _filled(kept: _Ranks, injected: int, rooms: Sequence[int]) -> Iterator[_Split]:
    if not rooms:
        yield (), 0
        return
    room, others = rooms[0], rooms[1:]
    for here in range(max(0, injected - sum(others)), min(room, injected) + 1):
        benign, rest = kept[: room - here], kept[room - here :]
        for sources, corrupted in _filled(rest, injected - here, others):
            yield (sources, corrupted + 1) if here else ((benign, *sources), corrupted)


def _keyed_sources(kept: _Ranks, injected: int, keys: Keys) -> Iterator[_Split]:
    """Untouched sources for every choice of sources that the attacker's passages join; the others are new sources."""
    grouped: dict[int, _Ranks] = {}
    for rank in kept:
        grouped[keys.places[rank]] = (*grouped.get(keys.places[rank], ()), rank)
    sources = list(grouped.values())
    for joined in range(min(injected, len(sources)) + 1):
        for hit in combinations(range(len(sources)), joined):
            yield tuple(g for i, g in enumerate(sources) if i not in hit), injected


def _origin_sources(kept: _Ranks, injected: int, keys: Keys) -> Iterator[_Split]:
    """`_keyed_sources` where passages without an origin share a source only as long as another one has an origin."""
    alone = all(keys.missing[rank] is not None for rank in kept)
    known = not all(keys.missing)
    if alone:  # and the attacker's passages name no origin
        yield from _adjacent_sources(kept, injected, 1)
    if not alone or (known and injected):
        yield from _keyed_sources(kept, injected, keys)


def _uncovered(found: dict[tuple[_Ranks, ...], int]) -> list[tuple[_Ranks, ...]]:
    """The cases that no other case covers, most sources first."""
    ordered = sorted(found, key=lambda sources: (-len(sources), sources))
    if len(ordered) > _MOST_COMPARED:
        return ordered
    held = {sources: frozenset(sources) for sources in ordered}

    def covers(other: tuple[_Ranks, ...], sources: tuple[_Ranks, ...]) -> bool:
        return held[other] < held[sources] and found[other] - found[sources] >= len(sources) - len(other)

    return [sources for sources in ordered if not any(covers(other, sources) for other in ordered)]
