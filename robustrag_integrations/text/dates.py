"""One date in whatever form it is written: `21 November 2026`, `November 21, 2026`, `2026-11-21`, `2026年11月21日`."""

from __future__ import annotations

import re
from datetime import date

from robustrag_integrations.text.languages import WORDS

_MONTHS = {name: place % 12 + 1 for place, name in enumerate(WORDS["months"])}
_MONTH = rf"(?P<name>{'|'.join(sorted(_MONTHS, key=len, reverse=True))})\.?"
_DAY = r"(?P<day>\d{1,2})(?:st|nd|rd|th|er|º|\.)?"
_YEAR = r"(?P<year>\d{4})"
_FORMS = [
    re.compile(form, re.I)
    for form in (
        r"(?P<month>\d{1,2})([./-])(?P<day>\d{1,2})\2(?P<year>\d{4})",
        r"(?P<year>\d{4})-(?P<month>\d{1,2})-(?P<day>\d{1,2})",
        rf"(?:le |el |il |den )?{_DAY} (?:of |de )?{_MONTH}(?:,?(?: de| del)? {_YEAR}(?: года| г\.?| р\.?| r\.?)?)?",
        rf"{_MONTH} {_DAY}(?:,? {_YEAR})?",
        r"(?:(?P<year>\d{4}) ?[年년] ?)?(?P<month>\d{1,2}) ?[月월] ?(?P<day>\d{1,2}) ?[日일号]",
    )
]
_LONGEST = 40  # characters
_LEAP_YEAR = 2000
_MONTHS_OF_A_YEAR = 12


def date_of(text: str) -> str | None:
    """Return a date as `2026-11-21`, without a year as `--11-21`; None for a text that is anything else, or holds more.

    No form may be read in two ways: the month is a word, or stands between year and day, or the day is above 12. A date
    that no calendar has is none.
    """
    for form in _FORMS if len(text) <= _LONGEST else ():
        if found := form.fullmatch(text):
            parts = found.groupdict()
            month = int(parts["month"]) if "month" in parts else _MONTHS[parts["name"].lower()]
            day = int(parts["day"])
            if form is _FORMS[0]:  # 21.11.2026, or 11/21/2026
                if max(month, day) <= _MONTHS_OF_A_YEAR and month != day:
                    return None
                month, day = sorted((month, day))
            try:
                written = date(int(parts["year"] or _LEAP_YEAR), month, day).isoformat()
            except ValueError:
                return None
            return written if parts["year"] else f"-{written[4:]}"
    return None
