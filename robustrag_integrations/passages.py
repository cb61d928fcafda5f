"""Passages and their isolation into groups (paper, section III-A, IsoGroup)."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

from robustrag_integrations.checks import check_at_least_one

GroupBy = Literal["source"] | Callable[["Passage"], Hashable]


@dataclass(frozen=True)
class Passage:
    """One retrieved text.

    Attributes:
        text: what the model reads. It is data: nothing in it is ever interpreted.
        id: a label that comes back in the answer; nothing is keyed by it.
        source: where the text came from (a URL, a file, an author): the unit that `by="source"` isolates.
        metadata: anything else; never shown to the model.
    """

    text: str
    id: str | None = None
    source: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not isinstance(self.text, str):
            raise TypeError(f"a passage's text must be a str, got {type(self.text).__name__}: {self.text!r:.60}")


@dataclass(frozen=True)
class PassageGroup:
    """Passages that share one isolated prompt: the unit of isolation and of corruption."""

    index: int
    passages: tuple[Passage, ...]

    @cached_property
    def text(self) -> str:
        """The passages' texts in rank order, with a blank line between two."""
        return "\n\n".join(p.text for p in self.passages)

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to read: such a group abstains without being asked."""
        return not self.text.strip()


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
            rank, so that one document cut into many chunks has one vote. Passages without a source (or with the key
            None) share one group, since an author who leaves the source out must not gain votes by it.

    Returns:
        The groups in order of their first passage; a group's `index` is its place in that order.

    Raises:
        TypeError: a passage is not text.
        ValueError: `group_size` is below 1, is not a whole number, or is combined with `by`.
    """
    items = as_passages(passages)
    check_grouping(group_size, by)
    if by is None:
        runs: Sequence[Sequence[Passage]] = [items[i : i + group_size] for i in range(0, len(items), group_size)]
    else:
        keyed: dict[Hashable, list[Passage]] = {}
        for passage in items:
            keyed.setdefault(passage.source if by == "source" else by(passage), []).append(passage)
        runs = list(keyed.values())
    return tuple(PassageGroup(index, tuple(run)) for index, run in enumerate(runs))


def check_grouping(group_size: int, by: GroupBy | None) -> None:
    """Raise ValueError unless the two settings of `isolate` make sense together."""
    check_at_least_one(group_size=group_size)
    if by is None:
        return
    if by != "source" and not callable(by):
        raise ValueError(f"group by {by!r}: use 'source' or a function from a Passage to a key")
    if group_size != 1:
        raise ValueError(f"group_size={group_size} and grouping by {by!r} exclude each other; leave one out")


def grouping_warnings(groups: Sequence[PassageGroup], by: GroupBy | None) -> list[str]:
    """What a reader of the answer should know about how these groups came about."""
    passages = [p for group in groups for p in group.passages]
    found = []
    if by == "source" and (bare := sum(p.source is None for p in passages)):
        found.append(
            f"{bare} of {len(passages)} passages have no source although grouping by source was asked for; "
            "they share one group"
        )
    ids = [p.id for p in passages]
    if len(set(ids)) < len(ids):
        found.append("some passages have the same id; they were kept apart, but reports cannot tell them apart by id")
    return found
