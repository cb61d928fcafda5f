"""Newer over older: votes and tiers from the date that a passage's own metadata names."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date, datetime, timezone

from robustrag_integrations._util.checks import check_at_least
from robustrag_integrations.errors import INTERRUPTS
from robustrag_integrations.grouping.passages import Passage, PassageGroup

NEWEST = "newest"
RECENT, OLDER = "recent", "older"  # tiers; without a date it is `OTHER`
_DAY = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2})(?:[T ][0-9:.,+-]{1,30}Z?)?", re.ASCII)
_MOST = 100  # votes


@dataclass(frozen=True)
class Newest:
    """Votes by date, for `weights=`, and tiers by date, for `tiers=`.

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
        object.__setattr__(self, "as_of", None if self.as_of is None else _day(self.as_of))
        check_at_least(1, recent=self.recent)

    @classmethod
    def named(cls, text: str) -> Newest | None:
        """Return what "newest" or "newest:KEY" means; None for any other text."""
        name, colon, key = text.partition(":")
        if name != NEWEST:
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
        return {NEWEST: self.key, "as_of": self._today().isoformat(), "recent": self.recent}

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
