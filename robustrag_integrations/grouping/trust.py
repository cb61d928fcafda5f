"""How far origins are trusted: the votes and the tier that each passage has, and so its group.

A mapping names origins, their folders, or their hosts and sites; the most precise name counts. Names of web pages,
their folders and hosts begin with `http:` or `https:`, in the mapping and in metadata; any other name meets that name
alone, since anybody can make a folder that is called like a host. A group has the fewest votes of its passages, and the
tier of the least trusted of them; a passage whose metadata names several origins is trusted no more than a stranger.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Generic, TypeVar

from robustrag_integrations._util.display import printable
from robustrag_integrations.errors import INTERRUPTS
from robustrag_integrations.grouping.origins import ADDRESS, Origin, label, origin_named, site_of
from robustrag_integrations.grouping.passages import (
    ORIGIN,
    PASSAGE,
    SITE,
    GroupBy,
    Passage,
    PassageGroup,
    readable_origin,
)

OTHER = "other"  # the tier of whatever has no other one
_LONGEST_LABEL = 60
T = TypeVar("T")

Tiers = Mapping[str, str] | Callable[[Passage], str | None]
_Name = tuple[str, Hashable]  # a kind of name, and the name


class ByOrigin(Generic[T]):
    """Values by origin, folder, host or site.

    Args:
        what: the setting, for messages.
        given: names as users write them, and their values.
        by: the criterion that a group's passages share.

    Raises:
        ValueError: two spellings of one name with different values.
    """

    def __init__(self, what: str, given: Mapping[Any, T], by: GroupBy) -> None:
        self.given = dict(given)
        self._by = by
        self._names: dict[_Name, Any] = {}  # in the form that is compared, to the key of `given`
        for key, value in given.items():
            for name in _names_meant(key, by):
                if given[other := self._names.setdefault(name, key)] != value:
                    raise ValueError(
                        f"{what}: {printable(str(key), 60)!r} is {value!r}, another spelling of it {given[other]!r}; "
                        "name it once"
                    )

    def of_passage(self, passage: Passage, key: Hashable) -> list[T | None]:
        """Return the values of a passage of a group with this key, the least of which counts: one, or those of all
        origins that it names."""
        found: list[T | None] = []
        for names in self._of(passage, key):
            entry = next((self._names[name] for name in names if name in self._names), None)
            found.append(None if entry is None else self.given[entry])
        return found if len(found) == 1 else [None, *found]

    def unused(self, groups: Sequence[PassageGroup]) -> list[str]:
        """Return the names that none of these groups is of."""
        every = (names for group in groups for passage in group.passages for names in self._of(passage, group.key))
        there = {self._names.get(name) for names in every for name in names}
        return [str(key) for key in self.given if key not in there]

    def _of(self, passage: Passage, key: Hashable) -> list[list[_Name]]:
        """Return the names, the most precise first, of each origin that a passage names."""
        if self._by not in (ORIGIN, SITE, PASSAGE):
            return [[("name", key)]]
        origin = readable_origin(passage)
        named: list[Origin | None] = [other for _, other in passage.contradicted] if origin else []
        return [list(_names_of(each, self._by)) for each in named or [origin]]


def _names_meant(key: object, by: GroupBy) -> Iterator[_Name]:
    """Yield what a name that a user writes stands for: an origin, with a slash at its end a folder, or a host."""
    if not isinstance(key, str) or callable(by) or (origin := origin_named(key)) is None:
        yield "name", key
        return
    if by not in (ORIGIN, SITE, PASSAGE):
        yield "name", origin.name
        return
    kind = _kind_of(origin)
    yield kind, origin.name
    if key.strip().endswith("/"):
        yield f"folder of {kind}", origin.name.rstrip("/")
    if origin.kind == ADDRESS and origin.host:
        if origin.name == origin.host:
            yield "host", origin.host
        if by == SITE:
            yield "host", site_of(origin)


def _names_of(origin: Origin | None, by: GroupBy) -> Iterator[_Name]:
    """Yield the names by which an origin may be meant, the most precise first."""
    if origin is None:
        return
    kind = _kind_of(origin)
    yield kind, origin.name
    folder = origin.page.rstrip("/")
    while folder:
        yield f"folder of {kind}", folder
        folder = folder.rpartition("/")[0]
    if origin.kind != ADDRESS or not origin.host:
        return
    host = origin.host
    yield "host", host
    while not host.startswith("[") and "." in (host := host.partition(".")[2]):  # a host above another one has a dot
        yield "host", host
    if by == SITE:
        yield "host", site_of(origin)


def _kind_of(origin: Origin) -> str:
    return "page" if origin.kind == ADDRESS else "name"


class TierRule:
    """The rule that gives groups their tiers.

    Attributes:
        by_origin: tiers by name; None where a function of a passage gives them.
        labels: the tiers that are known beforehand, the most trusted first.

    Raises:
        TypeError, ValueError: no tiers; the message names the fix.
    """

    def __init__(self, given: Any, by: GroupBy) -> None:
        self.by_origin: ByOrigin[str] | None = None
        self.labels: tuple[str, ...] = (OTHER,)
        self._given = given
        if isinstance(given, Mapping):
            for key, tier in given.items():
                if not isinstance(tier, str) or not 0 < len(tier.strip()) <= _LONGEST_LABEL:
                    raise ValueError(
                        f"tiers: {tier!r:.80} for {printable(str(key), 60)!r} must be a label such as 'internal', of "
                        f"at most {_LONGEST_LABEL} characters"
                    )
            self.by_origin = ByOrigin("tiers", given, by)
            self.labels = (*dict.fromkeys(tier for tier in given.values() if tier != OTHER), OTHER)
        elif not callable(given):
            raise TypeError(
                f"tiers must be a mapping from origins to labels, or a function of a Passage, got {given!r:.60}"
            )

    def of_group(self, group: PassageGroup) -> str:
        """Return the tier of a group's least trusted passage; `other` where it is not known which of two that is."""
        if self.by_origin is None:
            found = {self._label(passage) for passage in group.passages}
            return found.pop() if len(found) == 1 else OTHER
        tiers = (tier for p in group.passages for tier in self.by_origin.of_passage(p, group.key))
        return max((tier or OTHER for tier in tiers), key=self.labels.index, default=OTHER)

    def ordered(self, seen: Iterable[str]) -> tuple[str, ...]:
        """Return all tiers, those of these groups among them, with `other` last."""
        return (*(self.labels[:-1] or sorted({*seen} - {OTHER})), OTHER)

    def _label(self, passage: Passage) -> str:
        try:
            tier = label(self._given(passage))
        except INTERRUPTS:
            raise
        except BaseException:  # hostile metadata
            return OTHER
        return tier if tier is not None and tier.strip() and len(tier) <= _LONGEST_LABEL else OTHER
