"""What an answer costs besides its calls, and that nothing is missing in its trace."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from typing import Any

import pytest

from langchain_robustrag import create_robust_documents_chain
from robustrag_integrations.answers.answer import RobustAnswer
from tests.langchain.fakes import PROMPT, QUESTION, Reader, Recorder, truthful


def _asked(style: str, chain: Any, config: Any = None) -> Any:
    asked = {"input": QUESTION, "context": truthful()}
    return chain.invoke(asked, config) if style == "sync" else asyncio.run(chain.ainvoke(asked, config))


def _tree(recorder: Recorder) -> Counter[tuple[str, ...]]:
    return Counter((str(run["name"]), *recorder.ancestors(run)) for run in recorder.runs.values())


@pytest.mark.parametrize("style", ["sync", "async"])
def test_the_trace_has_every_call_with_its_prompt_and_model(style: str) -> None:
    recorder = Recorder()
    _asked(
        style,
        create_robust_documents_chain(Reader(), PROMPT, aggregation="keyword", final="always"),
        {"callbacks": [recorder], "run_name": "mine"},
    )
    calls = [*(f"group:{i}" for i in range(5)), "final"]
    expected = [("mine",), ("StrOutputParser", "mine")]
    for call in calls:
        expected += [(call, "mine"), ("ChatPromptTemplate", call, "mine"), ("model", call, "mine")]
    assert _tree(recorder) == Counter(expected)
    assert recorder.errors == []


@pytest.mark.parametrize("style", ["sync", "async"])
def test_a_report_is_written_for_those_who_listen_alone(style: str, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[None] = []
    to_dict = RobustAnswer.to_dict
    monkeypatch.setattr(RobustAnswer, "to_dict", lambda answer: written.append(None) or to_dict(answer))
    chain, recorder = create_robust_documents_chain(Reader(), PROMPT, aggregation="keyword", final="always"), Recorder()
    _asked(style, chain)
    assert not written
    _asked(style, chain, {"callbacks": [recorder]})
    assert len(written) == 1
    assert [name for name, _ in recorder.events] == ["robustrag_report"]


def test_questions_do_not_start_a_thread_per_call(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[None] = []
    start = threading.Thread.start
    monkeypatch.setattr(threading.Thread, "start", lambda thread: (started.append(None), start(thread))[1])
    chain = create_robust_documents_chain(Reader(), PROMPT, aggregation="keyword", final="always")
    for _ in range(20):
        _asked("sync", chain)
    assert len(started) <= 10  # of 100 calls


async def test_a_model_that_can_be_awaited_is_asked_in_the_event_loop_alone() -> None:
    threads: list[int] = []

    class Awaited(Reader):
        async def _agenerate(self, messages: Any, *args: Any, **kwargs: Any) -> Any:
            threads.append(threading.get_ident())
            return self._generate(messages)

    chain = create_robust_documents_chain(Awaited(), PROMPT, aggregation="keyword", final="always")
    await chain.ainvoke({"input": QUESTION, "context": truthful()})
    assert threads == [threading.get_ident()] * 6
