"""Structured replies through `with_structured_output`: the same as the core's, whatever a group replies."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.language_models import FakeListChatModel
from langchain_core.prompts import ChatPromptTemplate

pytest.importorskip("langchain_openai", reason="langchain-openai is not installed")

from langchain_openai import ChatOpenAI

from langchain_robustrag import create_robust_documents_chain
from robustrag_integrations import ConsensusAggregation
from robustrag_integrations.errors import ModelError
from robustrag_integrations.models.server.model import OpenAIModel
from robustrag_integrations.replies.structured import PROBE
from tests.helpers.structured_replies import (
    HOSTILE,
    PASSAGES,
    QUERY,
    assert_costs_its_group,
    assert_is_the_cores,
    said,
    server,
)

INPUT = {"context": [Document(text, metadata={"source": str(i)}) for i, text in enumerate(PASSAGES)], "query": QUERY}


def chain_of(url: str, **options: Any) -> Any:
    llm = ChatOpenAI(model="m", base_url=url, api_key="x", temperature=0, max_retries=0)  # type: ignore[arg-type]
    return create_robust_documents_chain(llm, return_robustness=True, **options)


@pytest.mark.parametrize(
    ("enforced", "way"), [("json_schema", "structured"), ("both", "structured"), ("refuses", "text")]
)
def test_answers_are_those_of_the_core(enforced: str, way: str) -> None:
    with server(enforced) as asked:
        chain = chain_of(asked.url, replies="auto")
        found = [
            chain.invoke(INPUT)["robustness"],
            asyncio.run(chain.ainvoke(INPUT))["robustness"],
            list(chain.stream(INPUT))[-1]["robustness"],
        ]
        model = OpenAIModel("m", asked.url)
        probes = asked.prompts.count(PROBE)
        expected = ConsensusAggregation(model, replies="auto").answer(QUERY, PASSAGES)
        model.close()
        assert asked.prompts.count(PROBE) <= 2 * probes  # once for each model
        prompts = [p for p in asked.prompts if p != PROBE]
    for answer in found:
        assert_is_the_cores(answer, expected, way)
    assert {prompts.count(prompt) for prompt in prompts} == {4}  # three calls of the chain and one of the core


@pytest.mark.parametrize("enforced", ["json_schema", "tool"])
def test_a_hostile_reply_costs_its_own_group_alone(enforced: str) -> None:
    for reply in HOSTILE:
        with server(enforced, lambda p, r=reply: r if "frogs" in p else said(p)) as asked:  # type: ignore[misc]
            answer = chain_of(asked.url, replies="structured").invoke(INPUT)["robustness"]
            assert_costs_its_group(answer, reply)


def test_a_prompt_of_the_users_has_the_fields_behind_the_passages() -> None:
    prompt = ChatPromptTemplate.from_messages([("system", "Be brief. {context}"), ("human", "{query}")])
    with server("json_schema") as asked:
        assert chain_of(asked.url, prompt=prompt, replies="structured").invoke(INPUT)["robustness"].text == "Paris"
        system = asked.requests[-1]["messages"][0]["content"]
    assert system.startswith("Be brief. Page ")
    assert '"found" is true if the text contains the answer' in system


def test_the_final_call_is_text() -> None:
    with server("json_schema") as asked:
        chain = chain_of(asked.url, aggregation="keyword", final="always", replies="structured")
        chain.invoke(INPUT)
        assert "Keywords:" in asked.prompts[-1]
        assert "response_format" not in asked.requests[-1]


def test_a_model_without_structured_output() -> None:
    llm = FakeListChatModel(responses=["Paris"])
    assert create_robust_documents_chain(llm, replies="auto").invoke(INPUT) == "Paris"
    with pytest.raises(ModelError, match="replies='structured' needs"):
        create_robust_documents_chain(llm, replies="structured").invoke(INPUT)
