"""Chains that stop when the answer is decided: tasks are cancelled, and their traces closed as cancelled."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tracers.base import BaseTracer
from langchain_core.tracers.schemas import Run
from pydantic import Field

from langchain_robustrag import VoteRules, create_robust_documents_chain


class Slow(BaseChatModel):
    """Answers at once, but for the page whose reply never comes."""

    cancelled: list[str] = Field(default_factory=list)

    @property
    def _llm_type(self) -> str:
        return "slow"

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        raise NotImplementedError

    async def _agenerate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        said = str(messages[-1].content)
        try:
            await asyncio.sleep(600 if "page 3" in said else 0)
        except asyncio.CancelledError:
            self.cancelled.append(said)
            raise
        return ChatResult(generations=[ChatGeneration(message=AIMessage("Lyon"))])


class Kept(BaseTracer):
    """Keeps all runs."""

    def __init__(self) -> None:
        super().__init__()
        self.roots: list[Run] = []

    def _persist_run(self, run: Run) -> None:
        self.roots.append(run)


@pytest.mark.parametrize(
    ("aggregation", "more"), [("voting", {"choices": ["Lyon", "Nice"]}), ("consensus", {})], ids=["voting", "consensus"]
)
async def test_tasks_are_cancelled_and_their_traces_closed(aggregation: str, more: dict[str, Any]) -> None:
    tracer, llm = Kept(), Slow()
    chain = create_robust_documents_chain(
        llm,
        aggregation=aggregation,
        votes=VoteRules(stop_when_decided=True),
        extractor=None if aggregation == "voting" else lambda text: {text},
        return_robustness=True,
        **more,
    )
    given = {"input": "Which city?", "context": [Document(f"page {i}") for i in range(7)]}
    said = await asyncio.wait_for(chain.ainvoke(given, {"callbacks": [tracer]}), 20)
    assert (said["answer"], said["robustness"].groups[3].status) == ("Lyon", "not_asked")
    assert sum("page 3" in prompt for prompt in llm.cancelled) == 1
    assert not tracer.run_map, "a run was left open"
    [root] = tracer.roots
    [slow] = [run for run in root.child_runs if run.name == "group:3"]
    [model] = [run for run in slow.child_runs if run.name == "Slow"]
    for run in (slow, model):
        assert run.end_time is not None
        assert "CancelledError" in str(run.error)
    assert root.error is None


def test_methods_that_cannot_stop_early_say_so() -> None:
    with pytest.raises(ValueError, match="KeywordAggregation needs what all groups say"):
        create_robust_documents_chain(
            Slow(), votes=VoteRules(stop_when_decided=True), aggregation="keyword", final="always"
        )
