"""Passages and their isolation into groups (paper, section III-A, IsoGroup)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

from robustrag_integrations.checks import check_at_least
from robustrag_integrations.keys import Keys, keys_of, label

GroupBy = Literal["source"] | Callable[["Passage"], Hashable]


@dataclass(frozen=True)
class Passage:
    """One retrieved text.

    Attributes:
        text: what the model reads. It is data: nothing in it is ever interpreted.
        id: a label that comes back in the answer; nothing is keyed by it.
        source: where the text came from (a URL, a file, an author): the unit that `by="source"` isolates. Numbers and
            paths become str; NaN, an empty text and everything else (a list, a dict) become None.
        metadata: anything else; never shown to the model.
    """

    text: str
    id: str | None = None
    source: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not isinstance(self.text, str):
            raise TypeError(f"a passage's text must be a str, got {type(self.text).__name__}: {self.text!r:.60}")
        for name in ("id", "source"):
            object.__setattr__(self, name, label(getattr(self, name)))


@dataclass(frozen=True)
class PassageGroup:
    """Passages that share one isolated prompt: the unit of isolation and of corruption.

    Attributes:
        index: the group's place (0-based), by its first passage.
        passages: in rank order.
        keyless: why these passages have no key, one word each, in the group of those without one.
        separator: the text between two passages.
        ranks: the places (0-based) of its passages among all that were given.
    """

    index: int
    passages: tuple[Passage, ...]
    keyless: tuple[str, ...] = field(default=(), compare=False)
    separator: str = "\n\n"
    ranks: tuple[int, ...] = field(default=(), compare=False)

    @cached_property
    def text(self) -> str:
        """The passages' texts in rank order."""
        return self.separator.join(p.text for p in self.passages)

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to read: such a group abstains without being asked."""
        return not any(p.text.strip() for p in self.passages)


def as_passages(passages: Iterable[str | Passage]) -> tuple[Passage, ...]:
    """Passages with an id each: strings are wrapped, missing ids become `p0`, `p1`, ... by rank.

    Raises:
        TypeError: an element is neither a str nor a Passage, or a single str was given in place of a list.
    """
    if isinstance(passages, (str, bytes, Passage)):
        raise TypeError(f"passages must be a list of str or Passage, got one {type(passages).__name__}; wrap it: [...]")
    return tuple(_as_passage(rank, item) for rank, item in enumerate(passages))


def _as_passage(rank: int, item: str | Passage) -> Passage:
    if isinstance(item, str):
        return Passage(item, id=f"p{rank}")
    if not isinstance(item, Passage):
        raise TypeError(f"passages[{rank}] must be a str or a Passage, got {type(item).__name__}: {item!r:.60}")
    if item.id is None:
        return Passage(item.text, id=f"p{rank}", source=item.source, metadata=item.metadata)
    return item


def isolate(
    passages: Iterable[str | Passage], group_size: int = 1, *, by: GroupBy | None = None
) -> tuple[PassageGroup, ...]:
    """Cut the ranked passages into disjoint groups (IsoGroup).

    Args:
        passages: k passages, best first.
        group_size: omega, how many adjacent passages share a group; m = ceil(k / omega).
        by: `"source"`, or a function from a passage to a key: all passages of one key share a group wherever they
            rank, so that one document cut into many chunks has one vote. Passages without a source or key share one
            group, since an author who leaves the source out must not gain votes by it. The function's None and NaN
            mean no key, as does a value that cannot be hashed or compared; where it raises, that passage has none.

    Returns:
        The groups in order of their first passage; a group's `index` is its place in that order.

    Raises:
        TypeError: a passage is not text.
        ValueError: `group_size` is below 1, is not a whole number, or is combined with `by`.
    """
    items = as_passages(passages)
    check_grouping(group_size, by)
    if by is None:
        runs = [items[i : i + group_size] for i in range(0, len(items), group_size)]
        return tuple(
            PassageGroup(index, run, ranks=tuple(range(index * group_size, index * group_size + len(run))))
            for index, run in enumerate(runs)
        )
    keys = passage_keys(items, by)
    members: dict[int, list[int]] = {}
    for rank, place in enumerate(keys.places):
        members.setdefault(place, []).append(rank)
    return tuple(_keyed_group(index, items, ranks, keys) for index, ranks in enumerate(members.values()))


def passage_keys(passages: Sequence[Passage], by: GroupBy) -> Keys:
    """Which of the passages share a group."""
    return keys_of(passages, by if callable(by) else lambda passage: passage.source)


def _keyed_group(index: int, items: Sequence[Passage], ranks: Sequence[int], keys: Keys) -> PassageGroup:
    reasons = tuple(reason for rank in ranks if (reason := keys.missing[rank]) is not None)
    return PassageGroup(index, tuple(items[rank] for rank in ranks), reasons, ranks=tuple(ranks))


def check_grouping(group_size: int, by: GroupBy | None) -> None:
    """Raise ValueError unless the two settings of `isolate` make sense together."""
    check_at_least(1, group_size=group_size)
    if by is None:
        return
    if by != "source" and not callable(by):
        raise ValueError(f"group by {by!r}: use 'source' or a function from a Passage to a key")
    if group_size != 1:
        raise ValueError(f"group_size={group_size} and grouping by {by!r} exclude each other; leave one out")


def grouping_warnings(groups: Sequence[PassageGroup], by: GroupBy | None) -> list[str]:
    """What a reader of the answer should know about how these groups came about."""
    found = keyless_warnings(groups, by)
    if by is None and (most := max((len(g.passages) for g in groups), default=1)) > 1:
        found.append(
            f"groups of {most} adjacent passages: the radius is about replacing what is in a group; a passage put in "
            "shifts which passages share one, and one such passage may change the answer. certify() counts that"
        )
    ids = [p.id for group in groups for p in group.passages]
    if len(set(ids)) < len(ids):
        found.append("some passages have the same id; they were kept apart, but reports cannot tell them apart by id")
    return found


def keyless_warnings(groups: Sequence[PassageGroup], by: GroupBy | None) -> list[str]:
    """How many passages have no source or key, and why."""
    reasons = Counter(reason for group in groups for reason in group.keyless)
    if not reasons:
        return []
    total = sum(len(group.passages) for group in groups)
    causes = ", ".join(f"{count} {reason}" for reason, count in reasons.most_common())
    what = "source" if by == "source" else f"group_by key ({causes})"
    return [f"{reasons.total()} of {total} passages have no {what}; they share one group"]
