"""In an event loop a plan's steps run at once where they are short, and in threads where they may take a while."""

from __future__ import annotations

import asyncio
import threading

import pytest

from robustrag_integrations import CallableModel, KeywordAggregation
from robustrag_integrations.defenses.agreement.reader import ReplyReader
from robustrag_integrations.grouping import votes
from robustrag_integrations.grouping.copies import first_of_same

PASSAGES = [f"Account {number}: the bridge was built by Bo Ek." for number in range(5)]


@pytest.fixture
def read_in(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """The names of the threads in which replies are read."""
    threads: set[str] = set()
    keys_of = ReplyReader.keys_of

    def noted(self, response):
        threads.add(threading.current_thread().name)
        return keys_of(self, response)

    monkeypatch.setattr(ReplyReader, "keys_of", noted)
    return threads


def answered(reply: str, **settings) -> str:
    async def said(prompt: str) -> str:
        return reply

    defense = KeywordAggregation(CallableModel(async_fn=said), **settings)
    return asyncio.run(defense.aanswer("Who built it?", PASSAGES)).text


def test_short_replies_are_read_in_the_event_loop(read_in: set[str]) -> None:
    assert answered("Bo Ek") == "Bo Ek"
    assert read_in == {threading.main_thread().name}


@pytest.mark.parametrize(
    ("reply", "settings"),
    [
        ("Bo Ek. " * 100, {}),
        ("\ufdfa" * 150, {}),  # each is read as eighteen characters
        ("Bo Ek", {"extractor": lambda text: set(text.split())}),
        ("Bo Ek", {"abstention": lambda text: False}),
    ],
)
def test_long_replies_and_functions_of_the_user_hold_up_no_loop(read_in: set[str], reply: str, settings) -> None:
    answered(reply, **settings)
    assert threading.main_thread().name not in read_in


def test_much_to_compare_in_passages_holds_up_no_loop(read_in: set[str]) -> None:

    async def said(prompt: str) -> str:
        return "Bo Ek"

    passages = [f"{text} {'word ' * 1000}" for text in PASSAGES]
    asyncio.run(KeywordAggregation(CallableModel(async_fn=said)).aanswer("Who built it?", passages))
    assert threading.main_thread().name not in read_in


def test_texts_are_compared_for_copies_in_a_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    compared_in = set()

    def noted(texts: list[str]) -> list[int]:
        compared_in.add(threading.current_thread().name)
        return first_of_same(texts)

    monkeypatch.setattr(votes, "first_of_same", noted)
    answered("Bo Ek", copies="one_vote")
    assert compared_in
    assert threading.main_thread().name not in compared_in


@pytest.mark.parametrize(
    ("filler", "settings", "threads"),
    [
        ("", {}, 0),
        ("word " * 1000, {}, 3),
        ("", {"extractor": lambda text: set(text.split())}, 4),  # which reads the final reply, too
        ("", {"copies": "one_vote"}, 1),
        ("", {"prime": 1}, 2),  # what is behind the priming call, too
    ],
)
def test_prompts_are_written_in_the_event_loop_where_they_are_short(
    monkeypatch: pytest.MonkeyPatch, filler: str, settings, threads: int
) -> None:
    taken, to_thread = [], asyncio.to_thread

    async def noted(*args):
        taken.append(args)
        return await to_thread(*args)

    async def said(prompt: str) -> str:
        return "Bo Ek"

    monkeypatch.setattr(asyncio, "to_thread", noted)
    defense = KeywordAggregation(CallableModel(async_fn=said), **settings)
    asyncio.run(defense.aanswer("Who built it?", [text + filler for text in PASSAGES]))
    assert len(taken) == threads
