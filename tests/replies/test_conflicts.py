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
    ("A", "B"),
    ("IT", "HR"),
    ("Yes, smoking is allowed", "Smoking is not allowed"),
    ("30", "45 days"),
    ("45 days", "24 hours"),
    ("1,500,000", "1,234,567 EUR"),
    ("$5", "€5"),
    ("9 am", "9 pm"),
    ("10 am to 5 pm", "10 am to 6 pm"),
    ("0800 22 99 10", "0900 11 22 33"),
    ("1,234,567 EUR", "2,234,567 EUR"),
    ("21 November", "22 November 2026"),
    ("May 2027", "June 2027"),
    ("Two days a week", "Three days per week"),
    ("Within 60 days", "Within 30 days of the trip"),
    ("The first tower is taller.", "The second tower is taller."),
    ("at least 5 mg", "at most 5 mg"),
    ("> 5 mg", "<5 mg"),
    ("before 5 pm", "after 5 pm"),
    ("mindestens 5 mg", "höchstens 5 mg"),
    ("The warranty does not cover water damage.", "The warranty covers water damage."),
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
    ("21 November", "21 November 2026"),
    ("Am 14.9.2026", "14 September 2026"),
    ("+49 (0)800 5544210", "0800-5544210"),
    ("5.5 t", "5,500 kg"),
    ("24 months", "2 years"),
    ("1,234,567", "1.2 million"),
    ("UK", "United Kingdom"),
    ("USA", "United States"),
    ("14:00", "2 pm"),
    ("15 Uhr", "3 pm"),
    ("6 Monate", "6 months"),
    ("11:30", "11.30 am"),
    ("10:00–17:00", "From 10 am to 5 pm"),
    ("Twenty-eight days.", "28 days"),
    ("2025-11-21", "With version 3.1.0"),
    ("at least 2", "at most 5"),
    ("not more than 5 mg", "at most 5 mg"),
    ("over 1,000 visitors", "1,234 visitors"),
    ("not before 9 am", "after 9 am"),
    ("Dogs are allowed", "Dogs are not allowed in the laboratory"),
    ("No, smoking is banned.", "Smoking is banned."),
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
