"""What an answer says that it spent: per source and in total, in every call style."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

from robustrag_integrations import CallableModel, KeywordAggregation, RobustAnswer
from robustrag_integrations.answers.usage import Usage
from robustrag_integrations.models.base import Response
from robustrag_integrations.models.reply import Ending, Piece

PASSAGES = ["Anna Lind runs the mill.", "The mill is run by Anna Lind.", "Bo sold it.", "Anna Lind has the mill."]
QUERY = "Who runs the mill?"


def counted(prompt: str) -> Response:
    """A reply that names its prompt's length as its tokens; the one about Bo tells nothing."""
    if "Bo sold" in prompt:
        return Response("I don't know")
    return Response("Anna Lind", usage=Usage(len(prompt), 10, 2, 0))


def pieces(prompt: str) -> Iterator[Piece]:
    yield "Anna "
    yield "Lind"
    yield Ending(usage=Usage(len(prompt), 10, 2, 0))


def model() -> CallableModel:
    return CallableModel(counted, stream_fn=pieces)


def styles(defense: Any, passages: Any) -> Iterator[RobustAnswer]:
    yield defense.answer(QUERY, passages)
    yield asyncio.run(defense.aanswer(QUERY, passages))
    stream = defense.stream(QUERY, passages)
    "".join(stream)
    yield stream.answer

    async def streamed() -> RobustAnswer:
        following = defense.astream(QUERY, passages)
        async for _ in following:
            pass
        return following.answer

    yield asyncio.run(streamed())


def test_every_call_style_counts_the_same() -> None:
    whole = [p for p in PASSAGES if "Bo" not in p]
    first, *others = (a.spending for a in styles(KeywordAggregation(model(), final="always"), whole))
    assert others == [first] * 3
    assert (first.calls, first.rounds, first.silent) == (4, 2, 0)
    assert first.total == first.told
    assert first.total.completion == 8
    assert first.total.cached == 40
    assert first.shared.completion == 2


def test_a_source_has_its_own_tokens_and_a_silent_one_makes_the_total_unknown() -> None:
    for answer in styles(KeywordAggregation(model(), final="always"), PASSAGES):
        assert [g.usage.completion for g in answer.sources] == [2, 2, None, 2]
        assert answer.spending.total == Usage()
        assert answer.spending.told.completion == 8
        assert answer.spending.silent == 1
