"""Calls of which no handler learns are made without the runs around them, and are the same calls."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import pytest
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableSequence
from langchain_core.runnables.config import ensure_config
from langchain_core.tracers.context import collect_runs
from pydantic import PrivateAttr

from langchain_robustrag import create_robust_documents_chain
from tests.langchain.fakes import PROMPT, QUESTION, Reader, Recorder, truthful

ASKED = {"input": QUESTION, "context": truthful()}


def answered(style: str, chain: Any, config: Any = None) -> Any:
    return chain.invoke(ASKED, config) if style == "sync" else asyncio.run(chain.ainvoke(ASKED, config))


class Inside(Reader):
    """Notes the config that runs inside of it would inherit."""

    _configs: list[Any] = PrivateAttr(default_factory=list)

    def _generate(self, messages: Any, *args: Any, **kwargs: Any) -> Any:
        self._note()
        return super()._generate(messages, *args, **kwargs)

    async def _agenerate(self, messages: Any, *args: Any, **kwargs: Any) -> Any:
        self._note()
        return await super()._agenerate(messages, *args, **kwargs)

    def _note(self) -> None:
        config = ensure_config()
        self._configs.append((sorted(config["tags"]), sorted(config["metadata"].items()), config.get("run_name")))

    @property
    def noted(self) -> Counter[str]:
        return Counter(map(repr, self._configs))


@pytest.mark.parametrize("style", ["sync", "async"])
def test_the_model_is_asked_the_same_whether_anybody_learns_of_it(style: str) -> None:
    unheard, heard = Inside(), Inside()
    said = answered(
        style, create_robust_documents_chain(unheard, PROMPT, aggregation="keyword", final="always"), {"tags": ["mine"]}
    )
    assert said == answered(
        style,
        create_robust_documents_chain(heard, PROMPT, aggregation="keyword", final="always"),
        {"tags": ["mine"], "callbacks": [Recorder()]},
    )
    assert sorted(unheard.prompts) == sorted(heard.prompts)
    assert unheard.noted == heard.noted
    assert unheard.noted.total() == len(unheard.prompts)


@pytest.mark.parametrize("style", ["sync", "async"])
def test_nobody_who_listens_means_no_sequence(style: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[None] = []
    for name in ("invoke", "ainvoke"):
        whole = getattr(RunnableSequence, name)
        monkeypatch.setattr(
            RunnableSequence, name, lambda *args, whole=whole, **kwargs: (made.append(None), whole(*args, **kwargs))[1]
        )
    chain = create_robust_documents_chain(Reader(), PROMPT, aggregation="keyword", final="always")
    answered(style, chain)
    assert not made
    answered(style, chain, {"callbacks": [Recorder()]})
    assert len(made) == 6


@pytest.mark.parametrize("style", ["sync", "async"])
def test_callbacks_of_the_model_itself_see_the_calls_within_their_runs(style: str) -> None:
    recorder, own = Recorder(), Recorder()
    answered(
        style,
        create_robust_documents_chain(Reader(), PROMPT, aggregation="keyword", final="always"),
        {"callbacks": [recorder]},
    )
    answered(
        style, create_robust_documents_chain(Reader(callbacks=[own]), PROMPT, aggregation="keyword", final="always")
    )
    models = [run for run in recorder.runs.values() if run["name"] == "model"]
    assert Counter(repr(sorted(run["tags"])) for run in own.runs.values()) == Counter(
        repr(sorted(run["tags"])) for run in models
    )
    assert len({run["parent_run_id"] for run in own.runs.values()}) == 6


@pytest.mark.parametrize("style", ["sync", "async"])
def test_listeners_in_the_context_see_every_run(style: str) -> None:
    with collect_runs() as seen:
        answered(style, create_robust_documents_chain(Reader(), PROMPT, aggregation="keyword", final="always"))
    [root] = seen.traced_runs
    groups = [run for run in root.child_runs if run.name.startswith("group:")]
    assert [[run.run_type for run in group.child_runs] for group in groups] == [["prompt", "llm"]] * 5


@pytest.mark.parametrize("style", ["sync", "async"])
def test_a_prompt_that_does_more_than_to_be_filled_in_is_invoked(style: str) -> None:
    class Shouted(ChatPromptTemplate):
        def invoke(self, input: Any, config: Any = None, **kwargs: Any) -> Any:
            return super().invoke({**input, "input": input["input"].upper()}, config, **kwargs)

        async def ainvoke(self, input: Any, config: Any = None, **kwargs: Any) -> Any:
            return await super().ainvoke({**input, "input": input["input"].upper()}, config, **kwargs)

    model = Reader()
    answered(
        style, create_robust_documents_chain(model, Shouted(PROMPT.messages), aggregation="keyword", final="always")
    )
    assert all(QUESTION.upper() in prompt for prompt in model.prompts)
