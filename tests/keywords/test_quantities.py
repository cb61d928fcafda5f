"""Numbers, dates and times are looked for only where they may stand."""

from __future__ import annotations

import random

import pytest

from robustrag_integrations.keywords.closed_classes import listed
from robustrag_integrations.keywords.quantities import _LETTERS, _READERS, _begin, find_quantities

PIECES = [
    *listed(
        "May 3 12 1999 1980s 80's 3rd twenty-first 5/8 10^6 half past nine quarter to ten 9:30 9.30 9 pm a.m. p.m 15% "
        "$5 one Two twenty seven thousand k 1999-05-03 3 of March, 3 Sept. :45 :30pm -4 minus .5 1,000 km 8:15:20 "
        "Sepember It was a day in September., of 2020 negative us$ -.5 2:00:35 1:40.91"
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


@pytest.mark.parametrize(
    ("written", "number"),
    [
        ("3,5", "3.5"),
        ("12,50", "12.50"),
        ("-3,5", "-3.5"),
        ("0,125", "0.125"),
        ("1.234,5", "1234.5"),
        ("1,500", "1500"),
        ("1,500.25", "1500.25"),
        ("10,000,000", "10000000"),
        ("1.500", "1.500"),
    ],
)
def test_a_comma_is_a_point_where_no_thousands_can_be_meant(written: str, number: str) -> None:
    [quantity] = find_quantities(written)
    assert number in quantity.forms


@pytest.mark.parametrize(
    ("line", "keyword"),
    [
        ("2:00:35", "2:00:35"),
        ("02:00:35", "2:00:35"),
        ("1:40,91", "1:40.91"),
        ("4:13:05.2", "4:13:05.2"),
        ("18+", "18+"),
        ("100,000+ people", "100000+"),
        ("$5+", "$5"),
        ("Room 12B", "12b"),
    ],
)
def test_what_stands_behind_a_number_belongs_to_it(line: str, keyword: str) -> None:
    [quantity] = find_quantities(line)
    assert quantity.forms[0] == keyword


def test_a_number_with_a_letter_still_meets_the_number_in_words() -> None:
    [quantity] = find_quantities("12B users")
    assert {"12 billion", "12000000000"} <= {*quantity.forms}


def test_a_part_of_what_stands_around_a_colon_is_no_number() -> None:
    assert find_quantities("3:75:10") == ()


def test_numbers_in_a_row_are_no_decimals() -> None:
    assert find_quantities("1,2,3") == ()


@pytest.mark.parametrize(
    ("line", "keyword"),
    [
        ("01234", "01234"),
        ("+0170", "0170"),
        ("044 532 130", "044532130"),
        ("05-10", "05-10"),
        ("000", "000"),
        ("0", "0"),
    ],
)
def test_leading_zeros_of_a_bare_number_are_part_of_it(line: str, keyword: str) -> None:
    [quantity] = find_quantities(line)
    assert quantity.forms == (keyword,)


@pytest.mark.parametrize(
    ("line", "keyword"), [("05 minutes", "5 minute"), ("$05", "$5"), ("-05", "-5"), ("00.5", "0.5"), ("01.00", "1")]
)
def test_leading_zeros_of_an_amount_mean_nothing(line: str, keyword: str) -> None:
    [quantity] = find_quantities(line)
    assert quantity.forms[0] == keyword


def test_spaces_between_the_digits_of_a_code_make_no_difference() -> None:
    assert find_quantities("00800 123 456")[0].forms[0] == "00800"
    assert find_quantities("044 532 130")[0].forms == find_quantities("044532130")[0].forms


def test_letters_that_are_others_in_another_case_are_read_as_these() -> None:
    """Patterns that pass over case take "\u017f" for an s, and no table of words has it."""
    plain = (
        "$5 million, 6 kilometers, twenty-first, six kilograms, 3 sept 2020, half past six in the morning, 7 usd, "
        "two million three hundred thousand seconds"
    )
    expected = [(each.start, each.end, each.forms) for each in find_quantities(plain)]
    for letter, others in {"i": "\u0131\u0130", "s": "\u017f", "k": "\u212a"}.items():
        for other in others:
            found = find_quantities(plain.replace(letter, other))
            assert [(each.start, each.end, tuple(map(str.lower, each.forms))) for each in found] == expected
