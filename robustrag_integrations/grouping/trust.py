"""How far origins are trusted: the votes and the tier that each passage has, and so its group.

A mapping names origins, their folders, or their hosts and sites; the most precise name counts. A group has the fewest
votes of its passages, and the tier of the least trusted of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from robustrag_integrations._util.display import printable
from robustrag_integrations.errors import INTERRUPTS
from robustrag_integrations.grouping.keys import label
from robustrag_integrations.grouping.newest import OLDER, RECENT, Newest
from robustrag_integrations.grouping.origins import Origin, origin_named
from robustrag_integrations.grouping.passages import (
    ORIGIN,
    PASSAGE,
    SITE,
    GroupBy,
    Passage,
    PassageGroup,
    readable_origin,
)
from robustrag_integrations.grouping.sites import site_of

OTHER = "other"  # the tier of whatever has no other one
_LONGEST_LABEL = 60
T = TypeVar("T")

Tiers = Mapping[str, str] | str | Callable[[Passage], str | None]


@dataclass(frozen=True)
class ByOrigin(Generic[T]):
    """Values by origin, folder, host or site.

    Attributes:
        values: by name, in the form that is compared.
        by: what a group's passages have in common.
    """

    values: Mapping[str, T]
    by: GroupBy

    @classmethod
    def of(cls, what: str, given: Mapping[Any, T], by: GroupBy) -> ByOrigin[T]:
        """Read names as users write them.

        Args:
            what: the argument, for messages.
            given: by name.
            by: what a group's passages have in common.

        Raises:
            ValueError: two spellings of one name with different values.
        """
        values: dict[Any, T] = {}
        for key, value in given.items():
            name = key
            if isinstance(key, str) and not callable(by) and (origin := origin_named(key)) is not None:
                name = site_of(origin) if by == SITE else origin.name.rstrip("/") or origin.name
            if values.setdefault(name, value) != value:
                raise ValueError(
                    f"{what}: {printable(str(key), 60)!r} is {value!r}, another spelling of it {values[name]!r}; name "
                    "it once"
                )
        return cls(values, by)

    def each(self, group: PassageGroup) -> list[T | None]:
        """Return the value of each of a group's passages; of its key where it is grouped by another one than origin."""
        if self.by in (ORIGIN, SITE, PASSAGE):
            return [self._at(readable_origin(passage)) for passage in group.passages]
        return [self.values.get(group.key)]  # type: ignore[call-overload]

    def unused(self, groups: Sequence[PassageGroup]) -> list[str]:
        """Return the names that none of these groups is of."""
        if self.by in (ORIGIN, SITE, PASSAGE):
            origins = [origin for group in groups for p in group.passages if (origin := readable_origin(p)) is not None]
            there: set[object] = {name for origin in origins for name in _names_of(origin)}
        else:
            there = {group.key for group in groups}
        return [str(name) for name in self.values if name not in there]

    def _at(self, origin: Origin | None) -> T | None:
        names = () if origin is None else _names_of(origin)
        return next((self.values[name] for name in names if name in self.values), None)


def _names_of(origin: Origin) -> Iterator[str]:
    """Yield the names by which an origin may be meant, the most precise first: itself, folders, hosts and sites."""
    yield origin.name
    folder = origin.page.rstrip("/")
    while folder:
        yield folder
        folder = folder.rpartition("/")[0]
    host = origin.host or ""
    while host:
        yield host
        host = host.partition(".")[2] if not host.startswith("[") else ""


@dataclass(frozen=True)
class TierRule:
    """The rule that gives groups their tiers.

    Attributes:
        given: as users write it.
        labels: the tiers that are known beforehand, the most trusted first.
        by: what a group's passages have in common.
    """

    given: ByOrigin[str] | str | Newest | Callable[[Passage], str | None]
    labels: tuple[str, ...]
    by: GroupBy

    @classmethod
    def of(cls, given: Any, by: GroupBy) -> TierRule:
        """Read tiers as users write them.

        Raises:
            TypeError, ValueError: no tiers; the message names the fix.
        """
        if isinstance(given, Mapping):
            for key, tier in given.items():
                if not isinstance(tier, str) or not 0 < len(tier.strip()) <= _LONGEST_LABEL:
                    raise ValueError(
                        f"tiers: {tier!r:.80} for {printable(str(key), 60)!r} must be a label such as 'internal', of "
                        f"at most {_LONGEST_LABEL} characters"
                    )
            names = (tier for tier in given.values() if tier != OTHER)
            return cls(ByOrigin.of("tiers", given, by), (*dict.fromkeys(names), OTHER), by)
        if isinstance(given, str):
            if not given.strip():
                raise ValueError("tiers='': name an entry of the metadata, such as 'department'")
            given = Newest.named(given) or given
        elif not callable(given):
            raise TypeError(
                "tiers must be a mapping from origins to labels, the name of a metadata entry, or a function of a "
                f"Passage, got {type(given).__name__}"
            )
        return cls(given, (RECENT, OLDER, OTHER) if isinstance(given, Newest) else (OTHER,), by)

    @property
    def is_closed(self) -> bool:
        """True if there are no tiers but those known beforehand."""
        return isinstance(self.given, (ByOrigin, Newest))

    def of_group(self, group: PassageGroup) -> str:
        """Return the tier of a group's least trusted passage; `other` where it is not known which of two that is."""
        if isinstance(self.given, ByOrigin):
            found = {tier or OTHER for tier in self.given.each(group)}
        else:
            found = {self._label(passage) for passage in group.passages}
        if len(found) > 1 and not self.is_closed:
            return OTHER
        return max(found, key=lambda tier: self.labels.index(tier) if tier in self.labels else -1, default=OTHER)

    def ordered(self, seen: Iterable[str]) -> tuple[str, ...]:
        """Return all tiers, those of these groups among them, with `other` last."""
        return (*(self.labels[:-1] or sorted({*seen} - {OTHER})), OTHER)

    def _label(self, passage: Passage) -> str:
        try:
            if isinstance(self.given, Newest):
                found: object = self.given.tier(passage)
            elif isinstance(self.given, str):
                found = passage.metadata.get(self.given)
            else:
                found = self.given(passage)  # type: ignore[operator]
            tier = label(found)
        except INTERRUPTS:
            raise
        except BaseException:  # metadata that fails when it is read
            return OTHER
        return tier if tier is not None and tier.strip() and len(tier) <= _LONGEST_LABEL else OTHER

    def as_setting(self) -> Any:
        """The rule as answers name it, JSON-safe."""
        if isinstance(self.given, ByOrigin):
            return dict(self.given.values)
        if isinstance(self.given, Newest):
            return self.given.as_dict()
        return self.given if isinstance(self.given, str) else "function"
