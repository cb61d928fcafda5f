"""Structured replies through `structured_predict`: the same as the core's, whatever a group replies."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from llama_index.core.prompts import PromptTemplate
from llama_index.core.schema import NodeWithScore, TextNode

pytest.importorskip("llama_index.llms.openai_like", reason="llama-index-llms-openai-like is not installed")

from llama_index.llms.openai_like import OpenAILike

from llamaindex_robustrag import RobustRAGSynthesizer
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
from tests.llamaindex.fakes import FactReader

NODES = [NodeWithScore(node=TextNode(text=text, id_=str(i)), score=1.0) for i, text in enumerate(PASSAGES)]


def synthesizer_of(url: str, **options: Any) -> RobustRAGSynthesizer:
    llm = OpenAILike(
        model="m", api_base=url, api_key="x", is_chat_model=True, is_function_calling_model=True, max_retries=0
    )
    return RobustRAGSynthesizer(llm, **options)


def robust(response: Any) -> Any:
    return response.metadata.robust_answer


@pytest.mark.parametrize(("enforced", "way"), [("both", "structured"), ("refuses", "text"), ("nothing", "text")])
def test_answers_are_those_of_the_core(enforced: str, way: str) -> None:
    with server(enforced) as asked:
        synthesizer = synthesizer_of(asked.url, replies="auto")
        found = [
            robust(synthesizer.synthesize(QUERY, NODES)),
            robust(asyncio.run(synthesizer.asynthesize(QUERY, NODES))),
        ]
        assert asked.prompts.count(PROBE) == 1
        model = OpenAIModel("m", asked.url)
        expected = ConsensusAggregation(model, replies="auto").answer(QUERY, PASSAGES)
        model.close()
        prompts = [p for p in asked.prompts if p != PROBE]
    for answer in found:
        assert_is_the_cores(answer, expected, way)
    assert {prompts.count(prompt) for prompt in prompts} == {3}


def test_a_hostile_reply_costs_its_own_group_alone() -> None:
    for reply in HOSTILE:
        with server("tool", lambda p, r=reply: r if "frogs" in p else said(p)) as asked:  # type: ignore[misc]
            answer = robust(synthesizer_of(asked.url, replies="structured").synthesize(QUERY, NODES))
            assert_costs_its_group(answer, reply)


def test_a_template_of_the_users_has_the_fields_behind_the_passages() -> None:
    template = PromptTemplate("{query_str} Read: {context_str} Be brief.")
    with server("tool") as asked:
        synthesizer = synthesizer_of(asked.url, text_qa_template=template, replies="structured")
        assert str(synthesizer.synthesize(QUERY, NODES)) == "Paris"
        prompt = asked.prompts[-1]
    assert prompt.startswith(f"{QUERY} Read: Page ")
    assert prompt.endswith('"found" is true if the text contains the answer, else false. Be brief.')


def test_an_llm_without_a_schema() -> None:
    assert str(RobustRAGSynthesizer(FactReader(), replies="auto").synthesize(QUERY, NODES)) == "Paris"
    with pytest.raises(ModelError, match="replies='structured' needs"):
        RobustRAGSynthesizer(FactReader(), replies="structured").synthesize(QUERY, NODES)
