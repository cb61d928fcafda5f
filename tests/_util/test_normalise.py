"""The words of a text, as metrics, votes and reports compare them."""

from __future__ import annotations

import pytest

from robustrag_integrations._util.normalise import few_marks, plain_words
from robustrag_integrations.defenses.voting.options import check_choices, parse_option
from robustrag_integrations.text.keywords import as_keyword


@pytest.mark.parametrize(
    ("one", "other"), [("The Mill!", "the  mill"), ("Straße", "STRASSE"), ("e\u0301cole", "École")]
)
def test_case_width_punctuation_and_spacing_make_no_difference(one: str, other: str) -> None:
    assert plain_words(one) == plain_words(other)


def test_marks_that_spell_another_word_make_one_and_stacks_of_them_are_cut() -> None:
    assert few_marks("e" + "\u0301" * 9 + "a") == "e\u0301\u0301\u0301a"
    assert plain_words("की") != plain_words("का")
    assert check_choices(["की", "का"]) == ("की", "का")
    assert parse_option("का", ["की", "का"]) == 1


def test_a_thai_vowel_stays_as_it_is_typed() -> None:
    assert plain_words("คำตอบ!") == "คำตอบ"
    assert as_keyword("น้ำ") == "น้ำ"
