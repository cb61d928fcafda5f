"""What is logged of every answer, whichever way it was asked for; and what must never be."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

import pytest

from robustrag_integrations import KeywordAggregation
from tests.helpers.scripted import BARE, ScriptedModel

SECRETS = ("passage-secret", "query-secret", "reply-secret", "error-secret")
QUERY = "query-secret?"
PASSAGES = ["passage-secret 0", "passage-secret 1", "passage-secret 2", "passage-secret 3", "odd", "broken"]


def say(text: str) -> str | None:
    if text == "broken":
        return None
    return "other-words" if text == "odd" else "reply-secret"


def defense(**settings: Any) -> KeywordAggregation:
    return KeywordAggregation(
        ScriptedModel(say), extractor=lambda t: set(t.split()), prompts=BARE, alpha=0.5, **settings
    )


def whole(made: KeywordAggregation) -> None:
    made.answer(QUERY, PASSAGES)


def awaited(made: KeywordAggregation) -> None:
    asyncio.run(made.aanswer(QUERY, PASSAGES))


def streamed(made: KeywordAggregation) -> None:
    list(made.stream(QUERY, PASSAGES))


def astreamed(made: KeywordAggregation) -> None:
    async def take() -> None:
        async for _ in made.astream(QUERY, PASSAGES):
            pass

    asyncio.run(take())


WAYS = [whole, awaited, streamed, astreamed]


@pytest.mark.parametrize("way", WAYS)
def test_an_answer_is_logged_once_in_numbers(way: Callable, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, logger="robustrag_integrations"):
        way(defense())
    logged = [r.getMessage() for r in caplog.records if r.levelno == logging.INFO]
    assert len(logged) == 1
    assert "method=keyword sources=6 radius=1 abstained=False failed=1 differs=1 model_calls=7" in logged[0]
    assert "1 of 6 sources failed" in caplog.text
    assert not any(secret in caplog.text for secret in SECRETS)
