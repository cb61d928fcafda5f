"""Drivers in an event loop: what a plan computes between two requests must not hold up everybody else."""

from __future__ import annotations

import threading

import pytest

from robustrag_integrations import CallableModel, KeywordAggregation


@pytest.mark.parametrize("style", ["whole", "streamed"])
async def test_keywords_are_extracted_off_the_event_loop(style: str) -> None:
    threads = set()

    def extract(text: str) -> set[str]:
        threads.add(threading.get_ident())
        return set(text.split())

    async def say(prompt: str) -> str:
        return "Paris"

    defense = KeywordAggregation(CallableModel(async_fn=say), extractor=extract)
    if style == "whole":
        answer = await defense.aanswer("q", ["a", "b", "c"])
    else:
        stream = defense.astream("q", ["a", "b", "c"])
        assert [piece async for piece in stream] == ["Paris"]
        answer = stream.answer
    assert answer.text == "Paris"
    assert threads
    assert threading.get_ident() not in threads
