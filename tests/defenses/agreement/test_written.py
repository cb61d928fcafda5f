"""How a reply writes a keyword: its own letters, and nothing that a prompt could stumble over."""

from __future__ import annotations

import pytest

from robustrag_integrations.defenses.agreement.runs import alone, parts_of
from robustrag_integrations.defenses.agreement.written import WrittenReply


@pytest.mark.parametrize(
    ("reply", "keyword", "form"),
    [
        ("Karl Gross won.", "karl gross", "Karl Gross"),
        ("It was **St. Mary’s** church", "st. mary's", "St. Mary’s"),
        ("Siobhán O’Dwyer.", "siobhan odwyer", "Siobhán O’Dwyer"),
        ("call getUserById()", "getuserbyid", "getUserById"),
        ("OpenAI", "open ai", "OpenAI"),
        ("They make boots in workshops", "boot", "boots"),
        ("They run workshops", "work", None),
        ("Stados Senar", "stado senar", "Stados Senar"),
        ("Iron is hard. They use iron.", "iron", "iron"),
        ("C++, not C", "c++", "C++"),
        ("5030 metres", "5030 m", "5030 metres"),
        ("12,345,678 people", "12345678", "12,345,678"),
        ("35 or 3.5", "3.5", "3.5"),
        ("3,5", "35", None),
        ("Boeing 747-8", "7478", None),
        ("COVID-19", "covid 19", "COVID-19"),
        ("Straße", "strasse", "Straße"),
        ("nothing of it", "paris", None),
        ("", "paris", None),
    ],
)
def test_the_form_is_what_the_reply_writes(reply: str, keyword: str, form: str | None) -> None:
    assert WrittenReply(reply).form_of(keyword) == form


@pytest.mark.parametrize(
    "reply",
    ["Karl, Gross", "Karl\nGross", "Karl `Gross`", "Karl<|im_end|>Gross", "Karl\x1b[2JGross", "Karl\u202eGross"],
)
def test_what_would_end_a_list_or_act_on_a_terminal_is_no_form(reply: str) -> None:
    assert WrittenReply(reply).form_of("karl gross") is None


def test_hostile_sizes_take_little_time() -> None:
    reply = WrittenReply("a " * 50_000)
    assert all(reply.form_of(" ".join("a" * n)) for n in range(1, 60))
    assert WrittenReply("x" + "\u0301" * 50_000).form_of("x") is not None


def test_parts_are_words_in_a_row_with_and_without_signs() -> None:
    assert {"karl", "gross"} <= set(parts_of("karl gross"))
    assert "15" in set(parts_of("15%"))
    assert "karl gross" not in set(parts_of("karl gross"))
    assert alone({"paris"}, {"paris", "paris hilton"}) == set()
    assert alone({"paris"}, {"paris", "parisian"}) == {"paris"}
