"""Abstentions are told from answers by the meaning of the whole response, in many languages."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from robustrag_integrations.text.abstention import (
    LANGUAGES,
    LATIN,
    Abstention,
    _plain,
    hints_of,
    is_abstention,
    language,
    may_begin_phrase,
    silence_of,
)
from robustrag_integrations.text.answer_text import answer_text, unboxed


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


KNOWN, FRESH, SHORT = (tuple(phrases(file)) for file in ("known.txt", "fresh.txt", "short.txt"))
SPOKEN = sorted({spoken for spoken, _, _ in KNOWN})


@pytest.mark.parametrize("spoken", SPOKEN)
def test_known_replies_are_read_as_they_are_meant(spoken: str) -> None:
    said = [(kind, reply) for of, kind, reply in KNOWN if of == spoken]
    assert [reply for kind, reply in said if is_abstention(reply) != (kind == "refusals")] == []


@pytest.mark.parametrize(("kind", "most"), [("refusals", 0.10), ("answers", 0.005), ("look-alikes", 0.03)])
def test_few_replies_that_no_words_were_made_for_are_mistaken(kind: str, most: float) -> None:
    said = [(spoken, reply) for spoken, of, reply in FRESH if of == kind]
    mistaken = [(spoken, reply) for spoken, reply in said if is_abstention(reply) != (kind == "refusals")]
    assert len(mistaken) <= most * len(said), mistaken
    assert len({spoken for spoken, _ in said}) == 9


@pytest.mark.parametrize(("kind", "most"), [("refusals", 0.03), ("answers", 0.06)])
def test_few_short_replies_are_mistaken(kind: str, most: float) -> None:
    said = [reply for _, of, reply in SHORT if of == kind]
    mistaken = [reply for reply in said if is_abstention(reply) != (kind == "refusals")]
    assert len(mistaken) <= most * len(said), mistaken


@pytest.mark.parametrize(
    ("answer", "abstention"),
    [
        ("404 when the item is missing", "The answer is missing."),
        ("The file was not found", "The answer was not found."),
        ("not included in the plan", "Not included in the document."),
        ("No, it is not included.", "No, it is not included in the text."),
        ("The amount was not disclosed by either company", "The amount is not disclosed in the text."),
        ("The option is unknown", "The date is unknown."),
    ],
)
def test_what_a_thing_lacks_is_an_answer_and_what_the_text_lacks_is_none(answer: str, abstention: str) -> None:
    assert not is_abstention(answer)
    assert is_abstention(abstention)


@pytest.mark.parametrize("literal", ["[]", "==", "&&", "=>", "`nil`", "`null`", "{}", "0", "!="])
def test_a_literal_of_code_is_an_answer(literal: str) -> None:
    assert not is_abstention(literal)


def test_phrases_of_the_user_abstain_beside_the_known_ones() -> None:
    own = Abstention(("Computer says no", "kein Plan"))
    assert all(map(own, ("Computer says no.", "Kein Plan!", "I don't know.")))
    assert not any(map(own, ("The computer says no to Karl.", "Karl. Kein Planer.")))
    assert not is_abstention("Kein Plan!")


@pytest.mark.parametrize(
    "response",
    [
        *("not " * 5000, "no " * 600, "the text " * 220, "ไม่" * 600, "nein nicht " * 180, "n't " * 500, "没有" * 900),
        *("," * 2000, "<think>" * 3000, '{"answer":' * 3000, "\\boxed{" * 3000, "(" * 2000, "नहीं " * 400, "لا " * 600),
    ],
)
def test_hostile_responses_take_little_time(response: str) -> None:
    start = time.process_time()
    is_abstention(response)
    assert time.process_time() - start < 1.0


@pytest.mark.parametrize("name", sorted({*LANGUAGES} - {"ja", "zh"}))
def test_hostile_replies_in_any_language_take_little_time(name: str) -> None:
    words = [word for word in language(name).written("denies").replace("|", " ").split() if word.isalpha()][:8]
    start = time.process_time()
    for word in words:
        is_abstention(f"{word} " * (1900 // (len(word) + 1)))
    assert time.process_time() - start < 1.0


def test_every_section_of_every_language_is_a_pattern() -> None:
    for name in (*LANGUAGES, "shared"):
        for section in language(name).sections:
            language(name).finds(section, "word")


def test_a_clause_that_denies_holds_a_hint_of_its_language() -> None:
    # Without a hint a language's other words are not looked for.
    for _, kind, reply in (*KNOWN, *FRESH):
        plain = _plain(unboxed(answer_text(reply)))
        for name in LATIN if kind == "refusals" else ():
            if language(name).finds("denies", plain) or language(name).finds("of_source", plain):
                assert hints_of(*LATIN).search(plain), (name, reply)
                assert hints_of(name).search(plain), (name, reply)


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
