"""Abstentions: the phrase that was asked for, short replies, and clauses that say that the text does not say."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from robustrag_integrations.text.abstention import (
    Abstention,
    is_abstention,
    languages,
    may_begin_phrase,
    silence_of,
)


def phrases(file: str) -> Iterator[tuple[str, str, str]]:
    """Each reply of a file, with its language and its kind."""
    spoken = kind = ""
    for line in (Path(__file__).parent / file).read_text(encoding="utf-8").splitlines():
        if line.startswith("== "):
            spoken = line[3:]
        elif line in ("[refusals]", "[answers]", "[look-alikes]"):
            kind = line[1:-1]
        elif line and not line.startswith("#"):
            yield spoken, kind, line.replace("\\n", "\n")


FRESH, LACKS = tuple(phrases("fresh.txt")), tuple(phrases("lacks.txt"))


@pytest.mark.parametrize("question", [None, "What is the price of the mayor?"])
def test_what_a_thing_lacks_is_an_answer_and_what_the_text_lacks_is_none(question: str | None) -> None:
    assert [reply for _, kind, reply in LACKS if is_abstention(reply, question) != (kind == "refusals")] == []


@pytest.mark.parametrize(("kind", "most"), [("refusals", 0.05), ("answers", 0.005), ("look-alikes", 0.005)])
def test_few_replies_that_no_words_were_made_for_are_mistaken(kind: str, most: float) -> None:
    said = [(spoken, reply) for spoken, of, reply in FRESH if of == kind]
    mistaken = [(spoken, reply) for spoken, reply in said if is_abstention(reply) != (kind == "refusals")]
    assert len(mistaken) <= most * len(said), mistaken
    assert len({spoken for spoken, _ in said}) == 9


@pytest.mark.parametrize(
    ("reply", "abstains"),
    [
        ("I don't know who built the mill.", True),
        ("I don't know if Karl Gross built the mill.", False),
        ("The text does not say whether it was in 1802.", False),
        ("The handbook does not say who built it in 1700.", True),
        ("The text mentions Anna Lind, but not who built the mill.", False),
        ("The prize went to I Don't Know", False),
        ("I'm sorry, but the text does not say who built the Mill's wing.", True),
        ("The text does not mention A17b's builder.", True),
        ("The text does not mention O'Brien.", False),
        ("The text does not say who, the mill is old.", False),
        ("The text does not say who built it, the mill.", True),
    ],
)
def test_no_reply_with_a_number_or_a_name_that_the_question_lacks_abstains(reply: str, abstains: bool) -> None:
    assert is_abstention(reply, "Who built the mill A17b in 1700?") is abstains


@pytest.mark.parametrize("literal", ["[]", "==", "&&", "=>", "`nil`", "`null`", "{}", "0", "!="])
def test_a_literal_of_code_is_an_answer(literal: str) -> None:
    assert not is_abstention(literal)


def test_a_reply_that_repeats_what_was_asked_abstains() -> None:
    asked = "What did Ash tell the band The Who to do when?"
    assert is_abstention("to do when", asked)
    assert is_abstention("What did Ash tell the band The Who to do when", asked)
    for answer, question in [
        ("The Who", "Did you mean The Who?"),
        ("the tenant", "Is it paid by the owner or the tenant?"),
        ("who pays", "Ask Ash"),
    ]:
        assert not is_abstention(answer, question)


@pytest.mark.parametrize(
    "nothing", ["", " ", "…", '"."', '{"answer": null}', "null", "<think>Rome", "\\boxed{I don't know}"]
)
def test_nothing_is_an_abstention(nothing: str) -> None:
    assert is_abstention(nothing)


def test_phrases_of_the_user_abstain_beside_the_known_ones() -> None:
    own = Abstention(("Computer says no", "kein Plan"))
    assert all(
        map(own, ("Computer says no.", "Kein Plan!", "I don't know.", "Computer says no. The text does not say."))
    )
    assert not any(map(own, ("The computer says no to Karl.", "Karl. Kein Planer.", "Kein Plan. Rome.")))
    assert not is_abstention("Kein Plan!")


def test_every_short_reply_abstains_in_any_case_and_between_marks() -> None:
    for each in languages().values():
        for short in each.short:
            for reply in (short, f"{short}.", f'"{short}"', f"**{short.title()}**"):
                assert is_abstention(reply), reply


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        ("I don't know", "silent"),
        (" **“I don’t know.”**\n", "silent"),
        ("I DONT KNOW", "silent"),
        ("I don't know, the text does not say.", "silent"),
        ("The text does not say.", "abstains"),
        ("", "abstains"),
        ("I don't knowingly lie.", None),
        ("I don't know, but badges are returned within 30 days.", None),
        ("30 days", None),
    ],
)
def test_silence_begins_with_the_phrase_that_was_asked_for(reply: str, said: str | None) -> None:
    assert silence_of(reply) == said


def test_silence_has_the_phrases_of_the_user() -> None:
    assert silence_of("Keine Angabe.", ["I don't know", "keine Angabe!"]) == "silent"
    assert silence_of("Keine Angabe.") != "silent"


@given(
    st.text(max_size=30), st.sampled_from(["I don't know", "« Je ne sais pas »", "Không biết", "わかりません", "´`"])
)
def test_a_beginning_of_silence_may_begin_the_phrase(rest: str, phrase: str) -> None:
    for reply in (phrase + rest, phrase.upper() + " " + rest, rest):
        may = [may_begin_phrase(reply[:end], [phrase]) for end in range(len(reply) + 1)]
        assert may == sorted(may, reverse=True)  # once it cannot, it never can
        assert may[-1] or silence_of(reply, [phrase]) != "silent"
