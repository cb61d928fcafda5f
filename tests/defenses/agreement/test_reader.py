"""Replies of one question that are read together, and the keywords of the question."""

from __future__ import annotations

import pytest

from robustrag_integrations import SpacyKeywordExtractor
from robustrag_integrations.defenses.agreement.reader import KeywordReader
from robustrag_integrations.models.base import Response

QUESTION = "Who built the bridge of Sorra?"
REPLIES = [Response(text) for text in ("Bo Ek built the bridge.", "I don't know", QUESTION, "Bo Ek, in 1871", "")]


def reader() -> KeywordReader:
    SpacyKeywordExtractor()("Bo Ek")  # what is loaded at first use is there
    return KeywordReader.of(None, 1, None, "abstain").for_question(QUESTION)


def test_what_is_read_ahead_is_what_is_read_one_by_one() -> None:
    ahead, alone = reader(), reader()
    ahead.read_ahead(REPLIES)
    assert ahead.known.replies
    assert [ahead.keywords_of(r) for r in REPLIES] == [alone.keywords_of(r) for r in REPLIES]
    assert ahead.asked == alone.asked == SpacyKeywordExtractor()(QUESTION)


def test_a_question_that_abstains_is_no_answer_of_a_group() -> None:
    asked = KeywordReader.of(None, 1, None, "abstain").for_question("Who? I don't know.")
    asked.read_ahead([Response("Who? I don't know."), Response("Bo Ek")])
    assert asked.keywords_of(Response("I don't know.")).found is None


def test_one_question_knows_nothing_of_another_one() -> None:
    first = reader()
    first.read_ahead(REPLIES)
    second = first.for_question("Who painted it?")
    assert not second.known.replies
    assert second.asked == SpacyKeywordExtractor()("Who painted it?")


@pytest.mark.parametrize("query", ["Tell me about the bridge.", "Is it Paris or London?", "Who built it?"])
def test_what_was_read_for_a_question_is_not_kept_after_it(query: str) -> None:
    SpacyKeywordExtractor()("Bo Ek")
    settings = KeywordReader.of(None, 1, None, "abstain")
    one = settings.for_question(query)
    one.read_ahead([Response("Bo Ek built it."), Response("Nobody built it.")])
    assert len(one.known.replies) == 2
    assert not settings.known.replies
    assert not settings.for_question(query).known.replies


def test_replies_are_read_one_by_one_where_reading_them_together_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(self: object, texts: object) -> None:
        raise RecursionError

    asked, expected = reader(), reader().keywords_of(REPLIES[0])
    with monkeypatch.context() as patched:
        patched.setattr(SpacyKeywordExtractor, "of_each", fails)
        asked.read_ahead(REPLIES)
    assert asked.keywords_of(REPLIES[0]) == expected


def test_an_extractor_of_the_user_is_asked_reply_by_reply() -> None:
    heard: list[str] = []

    def extract(text: str) -> set[str]:
        heard.append(text)
        return set(text.split())

    asked = KeywordReader.of(extract, 1, None, "abstain").for_question(QUESTION)
    asked.read_ahead(REPLIES)
    assert heard == [QUESTION]
