"""How far origins are trusted: the votes and the tier that each passage has, and so its group.

A mapping names origins, their folders, or their hosts and sites; the most precise name counts. Names of web pages,
their folders and hosts begin with `http:` or `https:`, in the mapping and in metadata; any other name meets that name
alone, since anybody can make a folder that is called like a host. A group has the fewest votes of its passages, and the
tier of the least trusted of them; a passage whose metadata names several origins is trusted no more than a stranger.
`Newest` goes by the date that metadata names.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timezone
from typing import Any, Generic, TypeVar

from robustrag_integrations._util.checks import check_at_least
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
RECENT, OLDER = "recent", "older"  # tiers by date; without a date it is `OTHER`
_LONGEST_LABEL = 60
_NEWEST = "newest"
_DAY = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2})(?:[T ][0-9:.,+-]{1,30}Z?)?", re.ASCII)
_MOST = 100  # votes by date
T = TypeVar("T")

Tiers = Mapping[str, str] | str | Callable[[Passage], str | None]
_Name = tuple[str, Hashable]  # a kind of name, and the name


@dataclass(frozen=True)
class ByOrigin(Generic[T]):
    """Values by origin, folder, host or site.

    Attributes:
        given: as users write it.
        by: the criterion that a group's passages share.
        names: the name of each kind, in the form that is compared, to the entry of `given` that it stands for.
    """

    given: Mapping[Any, T]
    by: GroupBy
    names: Mapping[_Name, Any]

    @classmethod
    def of(cls, what: str, given: Mapping[Any, T], by: GroupBy) -> ByOrigin[T]:
        """Read names as users write them; `what` is the argument, for messages.

        Raises:
            ValueError: two spellings of one name with different values.
        """
        names: dict[_Name, Any] = {}
        for key, value in given.items():
            for name in _names_meant(key, by):
                if given[other := names.setdefault(name, key)] != value:
                    raise ValueError(
                        f"{what}: {printable(str(key), 60)!r} is {value!r}, another spelling of it {given[other]!r}; "
                        "name it once"
                    )
        return cls(dict(given), by, names)

    def of_passage(self, passage: Passage, key: Hashable) -> list[T | None]:
        """Return the values of a passage, the least of which counts: one, or those of all origins that it names.

        Args:
            passage: of a group.
            key: the group's key, which is what names mean where passages are grouped by another one than origin.
        """
        found: list[T | None] = []
        for names in self._of(passage, key):
            entry = next((self.names[name] for name in names if name in self.names), None)
            found.append(None if entry is None else self.given[entry])
        return found if len(found) == 1 else [None, *found]

    def unused(self, groups: Sequence[PassageGroup]) -> list[str]:
        """Return the names that none of these groups is of."""
        there = {self.names.get(name) for name in self._of_all(groups)}
        return [str(key) for key in self.given if key not in there]

    def hosts_meant(self, groups: Sequence[PassageGroup]) -> list[str]:
        """Return the names that none of these groups is of, but for which a scheme is missing."""
        there = {name for kind, name in self._of_all(groups) if kind == "host"}
        return [key for key in self.unused(groups) if key.strip().lower().rstrip("/") in there]

    def _of_all(self, groups: Sequence[PassageGroup]) -> Iterator[_Name]:
        for group in groups:
            for passage in group.passages:
                for names in self._of(passage, group.key):
                    yield from names

    def _of(self, passage: Passage, key: Hashable) -> list[list[_Name]]:
        """Return the names, the most precise first, of each origin that a passage names."""
        if self.by not in (ORIGIN, SITE, PASSAGE):
            return [[("name", key)]]
        origin = readable_origin(passage)
        named: list[Origin | None] = [other for _, other in passage.contradicted] if origin else []
        return [list(_names_of(each, self.by)) for each in named or [origin]]


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


@dataclass(frozen=True)
class TierRule:
    """The rule that gives groups their tiers.

    Attributes:
        given: as users write it.
        labels: the tiers that are known beforehand, the most trusted first.
    """

    given: ByOrigin[str] | str | Newest | Callable[[Passage], str | None]
    labels: tuple[str, ...]

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
            return cls(ByOrigin.of("tiers", given, by), (*dict.fromkeys(names), OTHER))
        if isinstance(given, str):
            if not given.strip():
                raise ValueError("tiers='': name an entry of the metadata, such as 'department'")
            given = Newest.named(given) or given
        elif not callable(given):
            raise TypeError(
                "tiers must be a mapping from origins to labels, the name of a metadata entry, or a function of a "
                f"Passage, got {type(given).__name__}"
            )
        return cls(given, (RECENT, OLDER, OTHER) if isinstance(given, Newest) else (OTHER,))

    @property
    def is_closed(self) -> bool:
        """True if there are no tiers but those known beforehand."""
        return isinstance(self.given, (ByOrigin, Newest))

    def of_group(self, group: PassageGroup) -> str:
        """Return the tier of a group's least trusted passage; `other` where it is not known which of two that is."""
        if isinstance(self.given, ByOrigin):
            each = (self.given.of_passage(passage, group.key) for passage in group.passages)
            found = {tier or OTHER for tiers in each for tier in tiers}
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
            return {str(key): tier for key, tier in self.given.given.items()}
        if isinstance(self.given, Newest):
            return self.given.as_dict()
        return self.given if isinstance(self.given, str) else "function"


@dataclass(frozen=True)
class Newest:
    """Newer over older: votes by date, for `weights=`, and tiers by date, for `tiers=`.

    A document of the last `recent` days has 100 votes, and of two older ones that which is half as old has four times
    the votes, so that three old documents do not outvote one half as old as they are; each has one vote at least. The
    votes depend on the document's own date and on `as_of` alone, never on the dates of others.

    A date is one of Python's, or a text that is `2024-05-31`, with a time behind it or none. Anything else is no date,
    and neither is one after `as_of`; a document without a date has one vote. Dates are taken as given: who writes them
    may write new ones, and an answer says so.

    As tiers: `recent`, `older`, and `other` for documents without a date.

    Args:
        key: the entry of the metadata.
        as_of: the day that ages are counted from; None for the day of the question, in UTC.
        recent: the number of days for which a document counts as new.

    Raises:
        TypeError, ValueError: an invalid argument.

    Examples:
        >>> Newest("effective", as_of=date(2026, 1, 1))(Passage("...", metadata={"effective": "2025-11-30"}))
        100
    """

    key: str = "date"
    as_of: date | None = None
    recent: int = 270

    def __post_init__(self) -> None:
        if not isinstance(self.key, str) or not self.key.strip():
            raise ValueError(f"Newest: key={self.key!r:.60} must name an entry of the metadata, such as 'date'")
        if self.as_of is not None and _day(self.as_of) is None:
            raise ValueError(f"Newest: as_of={self.as_of!r:.60} must be a date, or a text such as '2026-01-31'")
        object.__setattr__(self, "as_of", _day(self.as_of))
        check_at_least(1, recent=self.recent)

    @classmethod
    def named(cls, text: str) -> Newest | None:
        """Return what "newest" or "newest:KEY" means; None for any other text."""
        name, colon, key = text.partition(":")
        if name != _NEWEST:
            return None
        return cls(key) if colon else cls()

    def __call__(self, passage: Passage) -> int:
        """Return the passage's votes."""
        age = self._age(passage)
        if age is None:
            return 1
        return _MOST if age <= self.recent else max(1, _MOST * self.recent**2 // age**2)

    def tier(self, passage: Passage) -> str | None:
        """Return the passage's tier; None without a date."""
        age = self._age(passage)
        return None if age is None else RECENT if age <= self.recent else OLDER

    def day_of(self, group: PassageGroup) -> date | None:
        """Return the oldest date of a group's passages; None if one has none."""
        days = [self._dated(passage) for passage in group.passages]
        return min((day for day in days if day is not None), default=None) if None not in days else None

    def as_dict(self) -> dict[str, str | int]:
        """The rule with the day that it counted from, JSON-safe."""
        return {_NEWEST: self.key, "as_of": self._today().isoformat(), "recent": self.recent}

    def _today(self) -> date:
        return self.as_of or datetime.now(timezone.utc).date()

    def _age(self, passage: Passage) -> int | None:
        day = self._dated(passage)
        return None if day is None else (self._today() - day).days

    def _dated(self, passage: Passage) -> date | None:
        """Return the passage's date; None for none, for one in the future and for whatever is no date."""
        try:
            day = _day(passage.metadata.get(self.key))
        except INTERRUPTS:
            raise
        except BaseException:  # metadata that fails when it is read
            return None
        return None if day is None or day > self._today() else day


def _day(value: object) -> date | None:
    if isinstance(value, datetime):
        return value.date()
    if isinstance(value, date):
        return value
    if not isinstance(value, str) or (match := _DAY.fullmatch(value[:60].strip())) is None or len(value) > 60:
        return None
    try:
        return date.fromisoformat(match[1])
    except ValueError:
        return None
