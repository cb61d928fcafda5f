"""Replies as keys: each for itself, for one question, by runs of words or by an extractor of the user's."""

from __future__ import annotations

import pytest

from robustrag_integrations import SpacyKeywordExtractor
from robustrag_integrations.defenses.agreement.reader import ReplyReader
from robustrag_integrations.models.base import Response

QUESTION = "Who built the bridge of Sorra?"
REPLIES = [Response(text) for text in ("Bo Ek built the bridge.", "I don't know", QUESTION, "Bo Ek, in 1871", "")]


def reader(extractor: object = None, question: str = QUESTION) -> ReplyReader:
    return ReplyReader(extractor).for_question(question)  # type: ignore[arg-type]


def test_a_reply_is_read_alike_whatever_was_read_before_it() -> None:
    one, other = reader(), reader()
    ahead = [one.read(r) for r in REPLIES]
    assert ahead == [*reversed([other.read(r) for r in reversed(REPLIES)])]
    assert [reading.found is None for reading in ahead] == [False, True, False, False, True]


def test_a_question_that_abstains_is_no_answer_of_a_group() -> None:
    assert reader(question="Who? I don't know.").read(Response("I don't know.")).found is None


def test_one_question_knows_nothing_of_another_one() -> None:
    first = reader()
    assert "bridg" not in first.read(REPLIES[0]).found.keys  # type: ignore[union-attr]
    second = first.for_question("Who painted it?")
    assert "bridg" in second.read(REPLIES[0]).found.keys  # type: ignore[union-attr]
    assert "bridg" not in first.read(REPLIES[0]).found.keys  # type: ignore[union-attr]


def test_an_extractor_of_the_user_is_asked_reply_by_reply_and_once_for_the_question() -> None:
    heard: list[str] = []

    def extract(text: str) -> set[str]:
        heard.append(text)
        return set(text.split())

    asked = reader(extract)
    found = [asked.read(r).found for r in REPLIES[:2] + REPLIES[3:4]]
    assert sorted(heard) == sorted([QUESTION, REPLIES[0].text, REPLIES[3].text])  # type: ignore[type-var]
    assert found[0].keys == {"Bo", "Ek", "bridge."}  # type: ignore[union-attr]


def test_the_papers_keywords_can_be_chosen() -> None:
    found = reader(SpacyKeywordExtractor()).read(Response("Bo Ek built the bridge.")).found
    assert found is not None
    assert "bo ek" in found.keys
    assert not {"bridge", "build"} & found.keys  # they are the question's


@pytest.mark.parametrize("returned", [5, "words", [1], object()])
def test_an_extractor_that_returns_no_words_costs_its_group(returned: object) -> None:
    reading = reader(lambda text: returned).read(Response("Bo Ek"))
    assert reading.found is None
    assert reading.response.error


def test_keywords_with_null_characters_or_of_nothing_do_not_count() -> None:
    found = reader(lambda text: {"a\0", " ", "", "b"}).read(Response("x")).found
    assert found is not None
    assert found.keys == {"b"}


def test_keywords_of_too_few_words_count_where_they_are_items_of_a_list() -> None:
    read = ReplyReader(lambda text: set(text.replace(",", " ").split()), 2).for_question(QUESTION)
    assert read.keys_of("Bo, Ek, Ida").keys == {"Bo", "Ek", "Ida"}  # type: ignore[union-attr]
    assert read.keys_of("Bo Ek built it").keys == frozenset()  # type: ignore[union-attr]
