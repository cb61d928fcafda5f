"""A priming call fills a server's cache before the groups are asked, and has no say in the answer."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from robustrag_integrations import CallableModel, KeywordAggregation, MajorityVoting, RobustAnswer, VanillaRAG
from robustrag_integrations.answers.usage import Usage
from robustrag_integrations.errors import ModelError
from robustrag_integrations.models.base import Response
from robustrag_integrations.plans import priming

PASSAGES = ["Anna Lind runs the mill.", "The mill is run by Anna Lind.", "Bo Ek runs it.", "Anna Lind has the mill."]
QUERY = "Who runs the mill?"


class Log:
    """A model that notes when its calls begin and end."""

    def __init__(self, act: Callable[[str], None] = lambda prompt: None) -> None:
        self.events: list[tuple[str, str]] = []
        self._act = act

    def __call__(self, prompt: str) -> Response:
        name = next((p for p in PASSAGES if p in prompt), "final" if "Keywords" in prompt else "prime")
        self.events.append(("begin", name))
        self._act(name)
        self.events.append(("end", name))
        found = "Bo Ek" if "Bo Ek" in prompt and name != "final" else "Anna Lind"
        return Response(found, usage=Usage(len(prompt), None, 2))

    async def asked(self, prompt: str) -> Response:
        return await asyncio.to_thread(self, prompt)


def sync(defense: Any) -> RobustAnswer:
    return defense.answer(QUERY, PASSAGES)


def asynchronous(defense: Any) -> RobustAnswer:
    return asyncio.run(defense.aanswer(QUERY, PASSAGES))


def streamed(defense: Any) -> RobustAnswer:
    stream = defense.stream(QUERY, PASSAGES)
    "".join(stream)
    return stream.answer


def astreamed(defense: Any) -> RobustAnswer:
    async def run() -> RobustAnswer:
        stream = defense.astream(QUERY, PASSAGES)
        async for _ in stream:
            pass
        return stream.answer

    return asyncio.run(run())


STYLES = [sync, asynchronous, streamed, astreamed]


@pytest.mark.parametrize("style", STYLES)
def test_the_priming_call_ends_before_groups_are_asked_and_changes_nothing(style: Any) -> None:
    plain, log = style(KeywordAggregation(CallableModel(Log()), final="always")), Log()
    answer = style(KeywordAggregation(CallableModel(log), final="always", prime=1))
    assert log.events[:2] == [("begin", "prime"), ("end", "prime")]
    assert [name for kind, name in log.events if kind == "begin"].count("prime") == 1
    assert answer == plain
    assert (answer.spending.calls, answer.spending.rounds) == (plain.spending.calls + 1, plain.spending.rounds + 1)
    assert [g.usage for g in answer.groups] == [g.usage for g in plain.groups]
    assert (answer.spending.shared.completion, plain.spending.shared.completion) == (4, 2)


@pytest.mark.parametrize("style", STYLES)
def test_a_priming_call_that_fails_costs_nothing_but_itself(style: Any) -> None:
    def act(name: str) -> None:
        if name == "prime":
            raise ValueError("no")

    plain = style(KeywordAggregation(CallableModel(Log())))
    answer = style(KeywordAggregation(CallableModel(Log(act), attempts=1), prime=1))
    assert answer == plain
    assert answer.spending.silent == 1


@pytest.mark.parametrize("style", STYLES)
def test_a_priming_call_that_hangs_is_given_up(style: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(priming, "PATIENCE", 0.2)
    released = threading.Event()

    def act(name: str) -> None:
        if name == "prime":
            released.wait(20)

    log = Log(act)
    began = time.monotonic()
    try:
        answer = style(KeywordAggregation(CallableModel(log, max_concurrency=1), prime=1))
        assert time.monotonic() - began < 10  # it gave its slot back
    finally:
        released.set()
    assert answer == style(KeywordAggregation(CallableModel(Log())))


def test_a_stream_that_breaks_off_still_says_what_became_of_the_groups() -> None:
    def broken(prompt: str) -> Iterator[str]:
        yield "Anna"
        raise RuntimeError("gone")

    def gone(name: str) -> None:
        if name == "final":
            raise RuntimeError("gone, too")

    defense = KeywordAggregation(CallableModel(Log(gone), stream_fn=broken), prime=1, final="always")
    with pytest.raises(ModelError, match="gone") as caught:
        "".join(defense.stream(QUERY, PASSAGES))
    assert len(caught.value.groups) == len(PASSAGES)
    mended = KeywordAggregation(CallableModel(Log(), stream_fn=broken), final="always")
    assert "".join(mended.stream(QUERY, PASSAGES)) == mended.answer(QUERY, PASSAGES).text


def test_it_is_asked_only_where_it_pays() -> None:
    for prime, asked in ((True, False), (10, True), (False, False)):  # True: too little is in common here
        log = Log()
        KeywordAggregation(CallableModel(log), prime=prime).answer(QUERY, PASSAGES)
        assert (("begin", "prime") in log.events) is asked
    few = Log()
    KeywordAggregation(CallableModel(few), prime=1).answer(QUERY, PASSAGES[:2])
    assert ("begin", "prime") not in few.events


def test_no_passage_is_in_it_and_no_passage_decides_whether_it_is_asked() -> None:
    prompts: list[str] = []

    def fn(prompt: str) -> str:
        prompts.append(prompt)
        return "Anna Lind"

    defense = MajorityVoting(CallableModel(fn), prime=1)
    for passages in (PASSAGES, ["x" * 9000, "", "Zqv", "No news."]):
        prompts.clear()
        defense.answer(QUERY, passages, choices=["Anna Lind", "Bo Ek"])
        assert not any(p in prompts[0] for p in passages if p)
        assert QUERY in prompts[0]
        assert len(prompts) == len([p for p in passages if p]) + 1


async def test_a_cancelled_answer_cancels_its_priming_call() -> None:
    cancelled = asyncio.Event()

    async def ask(prompt: str) -> str:
        try:
            await asyncio.sleep(30)
        except asyncio.CancelledError:
            cancelled.set()
            raise
        return ""

    task = asyncio.ensure_future(KeywordAggregation(CallableModel(async_fn=ask), prime=1).aanswer(QUERY, PASSAGES))
    await asyncio.sleep(0.2)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await asyncio.wait_for(cancelled.wait(), 5)


@pytest.mark.parametrize("wrong", [-1, 0, 1.5, "yes", None], ids=repr)
def test_a_setting_that_makes_no_sense_is_refused(wrong: Any) -> None:
    with pytest.raises(ValueError, match="prime"):
        KeywordAggregation(CallableModel(Log()), prime=wrong)


def test_vanilla_asks_once_and_has_nothing_to_prime() -> None:
    with pytest.raises(ValueError, match="has no prime"):
        VanillaRAG(CallableModel(Log()), prime=True)  # type: ignore[call-arg]
