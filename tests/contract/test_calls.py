"""How models are called: failures stay in their source, interruptions are nobody's answer, and limits hold."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import CancelledError, ThreadPoolExecutor
from typing import Any

import pytest

from robustrag_integrations import ModelError, QuorumError, VoteRules
from tests.contract.drivers import STYLES, Driver
from tests.contract.script import QUESTION, Script, TooMany, planted, read, truthful

FINAL = {"method": "keyword", "final": "always"}


def failing(error: BaseException | Callable[[], BaseException], on: str = "Guide 2", times: int = 10**6) -> Script:
    """A model that raises where it reads this, so many times."""
    raised, lock = Counter[str](), threading.Lock()

    def say(prompt: str) -> str:
        if on in prompt:
            with lock:
                raised[prompt] += 1
            if raised[prompt] <= times:
                raise error if isinstance(error, BaseException) else error()
        return read(prompt)

    return Script(say)


# --- failures


@pytest.mark.parametrize("style", STYLES)
async def test_a_call_that_fails_costs_its_source_alone(kind: Driver, style: str) -> None:
    script = failing(ValueError("content\x1b[31m filter"))
    said = await kind.engine(script, truthful(), calls={"attempts": 1}).asked(style)
    assert said.text == "Paris"
    assert [g.status for g in said.answer.sources] == ["supports", "supports", "failed", "supports", "supports"]
    assert said.answer.sources[2].error == "ValueError: content·[31m filter"


@pytest.mark.parametrize("style", STYLES)
async def test_below_the_quorum_it_raises_with_the_first_cause_and_the_report(kind: Driver, style: str) -> None:
    engine = kind.engine(failing(ConnectionError("down"), on="Guide"), truthful(), calls={"attempts": 1})
    own = ConnectionError if "langchain" in kind.name else QuorumError  # by which retries and fallbacks choose
    with pytest.raises(own) as caught:
        await engine.asked(style)
    report: Any = vars(caught.value)["robustness"]
    assert (report.abstained, report.radius, report.method, report.query) == (True, 0, "consensus", QUESTION)
    assert [g.status for g in report.sources] == ["failed"] * 5
    assert "only 0 of 5 calls" in report.warnings[0]
    if "langchain" in kind.name:
        engine = kind.engine(
            failing(ConnectionError("down"), on="Guide"), [*truthful()[:3], planted("a", "a"), planted("b", "b")]
        )
        with pytest.raises(QuorumError, match="2 of 5") as caught:
            await engine.asked(style)
        assert isinstance(caught.value.__cause__, ConnectionError)


@pytest.mark.parametrize("style", STYLES)
async def test_a_final_call_that_fails_is_an_error(kind: Driver, style: str) -> None:
    engine = kind.engine(failing(ConnectionError("down"), on="Keywords:"), truthful(), **FINAL, calls={"attempts": 1})
    with pytest.raises((ModelError, ConnectionError), match="down"):
        await engine.asked(style)


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("error", [SystemExit(3), GeneratorExit()], ids=["SystemExit", "GeneratorExit"])
async def test_a_model_that_exits_costs_its_source_alone(kind: Driver, error: BaseException, style: str) -> None:
    if isinstance(error, SystemExit) and style in ("aask", "astream") and kind.name == "langchain":
        pytest.skip("SystemExit in a task of LangChain's own stops the event loop before anybody can catch it")
    said = await kind.engine(failing(error), truthful()).asked(style)
    assert said.text == "Paris"
    assert [g.status for g in said.answer.sources] == ["supports", "supports", "failed", "supports", "supports"]
    assert type(error).__name__ in (said.answer.sources[2].error or "")


@pytest.mark.parametrize("style", ["ask", "stream"])
@pytest.mark.parametrize("error", [KeyboardInterrupt(), CancelledError()], ids=repr)
async def test_an_interrupt_is_never_taken_for_a_failed_source(kind: Driver, error: BaseException, style: str) -> None:
    with pytest.raises(type(error)):
        await kind.engine(failing(error), truthful()).asked(style)


# --- busy servers


@pytest.mark.parametrize("style", STYLES)
async def test_a_429_is_tried_again(kind: Driver, style: str) -> None:
    script = failing(TooMany, on="Guide", times=2)
    said = await kind.engine(script, truthful()).asked(style)
    assert [g.status for g in said.answer.sources] == ["supports"] * 5
    assert set(Counter(script.prompts).values()) == {3}


async def test_the_tries_of_a_client_are_not_multiplied(framework: Driver) -> None:
    script = failing(TooMany)
    engine = framework.engine(framework.model(script, max_retries=2), truthful())
    assert [await engine.asked(style) for style in ("ask", "aask")]
    assert sum("Guide 2" in prompt for prompt in script.prompts) == 2


# --- limits


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("style", ["ask", "aask"])
async def test_no_more_calls_are_under_way_than_allowed_whoever_asks(kind: Driver, workers: int, style: str) -> None:
    script = Script(delay=0.01)
    engine = kind.engine(script, truthful(), calls={"workers": workers})
    if style == "ask":
        with ThreadPoolExecutor(3) as pool:
            list(pool.map(lambda _: engine.ask(), range(3)))
    else:
        await asyncio.gather(*(engine.aask() for _ in range(3)))
    assert script.peak == workers
    assert len(script.prompts) == 15


@pytest.mark.parametrize("style", ["ask", "astream"])
async def test_a_call_without_an_answer_in_time_is_a_failed_source(kind: Driver, style: str) -> None:
    over = threading.Event()

    def say(prompt: str) -> str:
        if "Guide 2" in prompt:
            over.wait(60)
        return read(prompt)

    if style in ("aask", "astream") and not kind.blocking:
        script = Script()
        script.areply = slow(script)  # type: ignore[method-assign]
    else:
        script = Script(say)
    try:
        said = await kind.engine(script, truthful(), calls={"timeout": 1.0, "attempts": 1}).asked(style)
    finally:
        over.set()
    assert said.text == "Paris"
    assert (said.answer.sources[2].error or "").startswith("TimeoutError")


def slow(script: Script) -> Any:
    """Wait for ever about one passage, as a coroutine does."""
    whole = script.areply

    async def areply(prompt: str) -> Any:
        if "Guide 2" in prompt:
            await asyncio.sleep(600)
        return await whole(prompt)

    return areply


# --- event loops


async def test_cancelling_cancels_all_calls(framework: Driver) -> None:
    script = Script(delay=30)
    task = asyncio.create_task(framework.engine(script, truthful()).aask())
    while script.now < 5:
        await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (script.now, script.broken, len(script.prompts)) == (0, 5, 5)


@pytest.mark.parametrize("style", ["aask", "astream"])
async def test_a_blocking_model_is_called_in_threads_and_another_one_in_the_loop(kind: Driver, style: str) -> None:
    script, beats = Script(delay=0.02), []

    async def beat() -> None:
        while True:
            beats.append(len(script.prompts))
            await asyncio.sleep(0)

    heart = asyncio.create_task(beat())
    await kind.engine(script, truthful()).asked(style)
    heart.cancel()
    assert {0, 5} <= set(beats)  # it beat before the first call, and while the last was under way
    if kind.blocking:
        assert threading.get_ident() not in script.threads
    else:
        assert set(script.threads) == {threading.get_ident()}


@pytest.mark.parametrize("method", [{"method": "voting", "choices": ["Paris", "Nice"]}, {}], ids=str)
async def test_what_is_decided_cancels_the_rest(framework: Driver, method: Any) -> None:
    script = Script()
    script.areply = slow(script)  # type: ignore[method-assign]
    engine = framework.engine(script, truthful(7), votes=VoteRules(stop_when_decided=True), **method)
    said = await asyncio.wait_for(engine.aask(), 20)
    assert (said.text, said.answer.sources[2].status) == ("Paris", "not_asked")
    with pytest.raises(ValueError, match="KeywordAggregation needs what all sources say"):
        framework.engine(Script(), [], votes=VoteRules(stop_when_decided=True), **FINAL)


# --- streams


@pytest.mark.parametrize("style", ["stream", "astream"])
async def test_a_stream_that_is_left_asks_nothing_more(framework: Driver, style: str) -> None:
    script = Script()
    engine = framework.engine(script, truthful(), **FINAL, calls={"workers": 1})
    if style == "stream":
        begun = [engine.stream() for _ in range(3)]
        assert [next(pieces).strip() for pieces in begun] == ["It"] * 3
        for pieces in begun:
            pieces.close()  # type: ignore[attr-defined]
    else:
        for _ in range(3):
            pieces_of_it = engine.astream()
            assert (await anext(pieces_of_it)).strip() == "It"
            await pieces_of_it.aclose()  # type: ignore[attr-defined]
    assert len(script.prompts) == 18


# --- sampling


@pytest.mark.parametrize("style", STYLES)
async def test_the_report_says_what_holds_of_a_run_that_was_drawn(kind: Driver, style: str) -> None:
    def answer(temperature: float | None, **settings: Any) -> Any:
        return kind.engine(kind.model(Script(), temperature=temperature), truthful(), **settings)

    found = (await answer(0.7, **FINAL, alpha=0.5).asked(style)).answer
    assert found.radius > 0
    assert (found.determinism.model, found.determinism.scope) == ("samples", "final_prompt")
    assert "the keywords that this run kept" in found.determinism.promise
    assert any("the model samples" in w for w in found.warnings)
    assert "0.7" in found.determinism.why
    counted = (await answer(0.7).asked(style)).answer
    assert counted.determinism.scope == "this_run"
    accepted = (await answer(0.7, calls={"accept_sampling": True}).asked(style)).answer
    assert not any("the model samples" in w for w in accepted.warnings)
    assert accepted.determinism.promise == counted.determinism.promise
    assert (await answer(0.0).asked(style)).answer.determinism.model == "unknown"


def test_questions_do_not_start_a_thread_per_call(kind: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[None] = []
    start = threading.Thread.start
    monkeypatch.setattr(threading.Thread, "start", lambda thread: (started.append(None), start(thread))[1])
    engine = kind.engine(Script(), truthful())
    for _ in range(20):
        engine.ask()
    assert len(started) <= 12  # of 100 calls
