"""A model's function that exits has failed like any other: it costs its group, not the answer or the program."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

import pytest

from robustrag_integrations import CallableModel, ConsensusAggregation, KeywordAggregation, ModelError
from robustrag_integrations.answers.answer import RobustAnswer
from robustrag_integrations.prompts import Prompt
from tests.helpers.scripted import BARE, split

PASSAGES = ["evil", *["Paris"] * 5]
EXITS = [SystemExit(3), SystemExit("gone"), GeneratorExit(), GeneratorExit("odd")]


def reading(error: BaseException, on: str = "evil") -> Callable[[str], str]:
    def fn(prompt: str) -> str:
        if on in prompt:
            raise error
        return "Paris"

    return fn


def reading_later(error: BaseException, on: str = "evil", *, pause: float = 0) -> Callable[[str], Awaitable[str]]:
    fn = reading(error, on)

    async def async_fn(prompt: str) -> str:
        await asyncio.sleep(pause)
        return fn(prompt)

    return async_fn


def asked(model: CallableModel, style: str, **rules: object) -> RobustAnswer:
    defense = ConsensusAggregation(model, **rules)
    match style:
        case "answer":
            return defense.answer("Where?", PASSAGES)
        case "aanswer":
            return asyncio.run(defense.aanswer("Where?", PASSAGES))
        case "stream":
            with defense.stream("Where?", PASSAGES) as pieces:
                "".join(pieces)
            return pieces.answer
        case _:

            async def streamed() -> RobustAnswer:
                async with defense.astream("Where?", PASSAGES) as pieces:
                    async for _ in pieces:
                        pass
                return pieces.answer

            return asyncio.run(streamed())


@pytest.mark.parametrize("rules", [{}, {"stop_when_decided": True}], ids=["all", "decided"])
@pytest.mark.parametrize("timeout", [None, 30.0])
@pytest.mark.parametrize("style", ["answer", "aanswer", "stream", "astream"])
@pytest.mark.parametrize("error", EXITS, ids=repr)
def test_an_exit_costs_its_group_alone(error: BaseException, style: str, timeout: float | None, rules: dict) -> None:
    for model in (
        CallableModel(reading(error), timeout=timeout),
        CallableModel(None, reading_later(error), timeout=timeout),
    ):
        answer = asked(model, style, **rules)
        assert answer.text == "Paris"
        if rules:  # others may have decided before
            continue
        assert answer.groups[0].status == "failed"
        assert answer.groups[0].error == f"ModelError: the model's function raised {told(error)}"
        assert {group.status for group in answer.groups[1:]} == {"supports"}


def told(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}" if error.args else type(error).__name__


@pytest.mark.parametrize("error", EXITS, ids=repr)
def test_an_exit_in_the_final_call_is_a_failed_call(error: BaseException) -> None:
    def pieces(prompt: str) -> Iterator[str]:
        yield "Pa"
        raise error

    def pieces_at_once(prompt: str) -> Iterator[str]:
        raise error

    async def later(prompt: str) -> AsyncIterator[str]:
        yield "Pa"
        raise error

    def fn(prompt: str) -> str:  # the isolated calls succeed, and the last one, about what was kept, exits
        return reading(error, "kept")(prompt)

    for streams in ({}, {"stream_fn": pieces}, {"stream_fn": pieces_at_once}, {"async_stream_fn": later}):
        for timeout in (None, 30.0):
            defense = KeywordAggregation(
                CallableModel(fn, timeout=timeout, **streams), extractor=split, prompts=BARE, final="always"
            )
            with pytest.raises(ModelError, match=f"the model's function raised {type(error).__name__}"):
                "".join(defense.stream("Where?", PASSAGES[1:]))

            async def streamed(defense: KeywordAggregation = defense) -> None:
                async for _ in defense.astream("Where?", PASSAGES[1:]):
                    pass

            with pytest.raises(ModelError, match=f"the model's function raised {type(error).__name__}"):
                asyncio.run(streamed())


@pytest.mark.parametrize("style", ["answer", "aanswer", "stream", "astream"])
def test_an_interrupt_interrupts(style: str) -> None:
    with pytest.raises(KeyboardInterrupt):
        asked(CallableModel(reading(KeyboardInterrupt())), style)


def test_a_stream_that_is_closed_closes_the_models_own_and_is_no_failure() -> None:
    closed = []

    def pieces(prompt: str) -> Iterator[str]:
        try:
            yield from ["Pa", "ris"]
        finally:
            closed.append(True)

    stream = CallableModel(reading(ValueError()), stream_fn=pieces).stream(Prompt("q"))
    assert next(stream) == "Pa"
    stream.close()
    assert closed == [True]


def test_a_loop_that_is_gone_closes_its_calls_without_another_try() -> None:
    calls = []

    async def hanging(prompt: str) -> str:
        calls.append(prompt)
        await asyncio.Event().wait()
        return ""

    model = CallableModel(None, hanging, retry_on=Exception)
    coroutine = model._caller.call(lambda: hanging("q"))
    loop = asyncio.new_event_loop()
    task = loop.create_task(coroutine)
    loop.run_until_complete(asyncio.sleep(0.01))
    coroutine.close()  # as the garbage collector does when the loop has gone
    task.cancel()
    loop.run_until_complete(asyncio.sleep(0))
    loop.close()
    assert len(calls) == 1
