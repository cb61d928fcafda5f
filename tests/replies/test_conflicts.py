"""Which answers surely contradict each other; sources that agree are never said to disagree."""

from __future__ import annotations

import pytest

from robustrag_integrations.replies.conflicts import contradict, differ

AGAINST = [
    ("1867", "1869"),
    ("30 June 2027", "1 May 2027"),
    ("5 mg", "5 g"),
    ("-5", "5"),
    ("13%", "15%"),
    ("45 days", "24 hours"),
    ("Anna Lind", "Otto Maier"),
    ("Anna Lind", "Anna Berg"),
    ("Yes, on Fridays", "No"),
    ("Ja.", "Nein, nie."),
    ("Water damage is covered.", "Water damage isn't covered."),
    ("Backups are not encrypted", "Backups are encrypted"),
    ("Refunds are paid within 14 days.", "Refunds are paid within 30 days."),
]
WORDINGS = [
    ("Ruth Penn", "Mayor Ruth Penn"),
    ("30", "30 Tage"),
    ("15 pounds", "£15"),
    ("15 pounds", "15.00"),
    ("10,000", "10000"),
    ("0800 22 99 10", "0800-229910"),
    ("+49 800 229910", "0800 22 99 10"),
    ("21 November 2026", "2026-11-21"),
    ("not encrypted", "unencrypted"),
    ("Backups are not encrypted.", "Backups aren't encrypted."),
    ("30 days", "a month"),
    ("30 days", "30 days, not counting holidays"),
    ("4 g for adults, 2 g for children", "Adults 4 g, children 2 g"),
    ("Standard pays 70% of dental costs.", "Premium pays 90% of dental costs and has no deductible."),
    ("Open Settings, choose Security.", "Go to Settings > Security > Reset."),
    ("No, smoking is banned.", "Smoking is forbidden in all offices."),
]


@pytest.mark.parametrize(("one", "other"), AGAINST)
def test_opposites_and_other_numbers_units_and_names_contradict(one: str, other: str) -> None:
    assert differ(one, other)
    assert differ(other, one)


@pytest.mark.parametrize(("one", "other"), WORDINGS)
def test_what_may_be_another_wording_does_not(one: str, other: str) -> None:
    assert not differ(one, other)
    assert not differ(other, one)


def test_two_of_many_are_enough() -> None:
    assert contradict(["5 mg", "5 drops", "5 g"])
    assert not contradict(["5 mg", "5 drops"])
    assert not contradict([])
