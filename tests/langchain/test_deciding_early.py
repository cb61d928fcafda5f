"""Chains that stop when the answer is decided: tasks are cancelled, and their traces closed as cancelled."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
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


@pytest.mark.parametrize(
    ("aggregation", "more"), [("voting", {"choices": ["Lyon", "Nice"]}), ("consensus", {})], ids=["voting", "consensus"]
)
async def test_tasks_are_cancelled(aggregation: str, more: dict[str, Any]) -> None:
    llm = Slow()
    chain = create_robust_documents_chain(
        llm,
        aggregation=aggregation,
        votes=VoteRules(stop_when_decided=True),
        return_robustness=True,
        **more,
    )
    given = {"input": "Which city?", "context": [Document(f"page {i}") for i in range(7)]}
    said = await asyncio.wait_for(chain.ainvoke(given), 20)
    assert (said["answer"], said["robustness"].groups[3].status) == ("Lyon", "not_asked")
    assert sum("page 3" in prompt for prompt in llm.cancelled) == 1


def test_methods_that_cannot_stop_early_say_so() -> None:
    with pytest.raises(ValueError, match="KeywordAggregation needs what all groups say"):
        create_robust_documents_chain(
            Slow(), votes=VoteRules(stop_when_decided=True), aggregation="keyword", final="always"
        )
