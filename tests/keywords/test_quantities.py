"""Numbers, dates and times are looked for only where they may stand."""

from __future__ import annotations

import random

from robustrag_integrations.keywords.closed_classes import listed
from robustrag_integrations.keywords.quantities import _LETTERS, _READERS, _begin

PIECES = [
    *listed(
        "May 3 12 1999 1980s 80's 3rd twenty-first 5/8 10^6 half past nine quarter to ten 9:30 9.30 9 pm a.m. p.m 15% "
        "$5 one Two twenty seven thousand k 1999-05-03 3 of March, 3 Sept. :45 :30pm -4 minus .5 1,000 km 8:15:20 "
        "Sepember It was a day in September., of 2020 negative us$ -.5"
    ),
    *[" ", "", ", ", ". ", "-", "/", ":", "'", "half past ", "a quarter to ", " of ", "_"],
]


def test_no_quantity_is_missed_by_what_is_looked_for_first() -> None:
    rng = random.Random(0)
    met = set()
    for _ in range(5000):
        line = "".join(rng.choice(PIECES) + rng.choice([" ", " ", ""]) for _ in range(rng.randint(1, 7)))
        words = frozenset(_LETTERS(line.lower()))
        begin = _begin(line, words)
        for number, (pattern, forms_of, may_stand_in) in enumerate(_READERS):
            found = [match.span() for match in pattern.finditer(line)]
            if any(forms_of(match) for match in pattern.finditer(line)):
                met.add(number)
                assert may_stand_in(line, words), (pattern.pattern, line)
            assert found == [match.span() for match in pattern.finditer(line, begin)], (pattern.pattern, line)
    assert met == set(range(len(_READERS)))
