"""Passages with nothing to read cost no call, abstain, and are named once."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.language_models.chat_models import SimpleChatModel
from langchain_core.prompts import ChatPromptTemplate, PromptTemplate
from llama_index.core.llms import CompletionResponse, CustomLLM, LLMMetadata
from llama_index.core.schema import NodeWithScore, TextNode

from langchain_robustrag import create_robust_documents_chain
from llamaindex_robustrag import RobustRAGSynthesizer
from robustrag_integrations import CallableModel, ConsensusAggregation, KeywordAggregation, MajorityVoting
from tests.helpers.scripted import ScriptedModel

BLANK = ["", "  \n\t", "\u200b\u2060", "\xa0"]
PASSAGES = ["Rome, they say.", *BLANK, "It is Rome.", "Rome."]
NAMED = "4 passages blank (p1; p2; p3; p4)"


@pytest.mark.parametrize("defense", [ConsensusAggregation, KeywordAggregation, MajorityVoting])
@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_blank_passage_costs_no_call_and_abstains(defense, asynchronous: bool) -> None:
    asked = []
    model = CallableModel(lambda prompt: asked.append(prompt) or "Rome")
    choices = {"choices": ["Rome", "Oslo"]} if defense is MajorityVoting else {}
    made = defense(model, group_by="passage")
    answer = (
        asyncio.run(made.aanswer("Where?", PASSAGES, **choices))
        if asynchronous
        else made.answer("Where?", PASSAGES, **choices)
    )
    assert answer.text == "Rome"
    calls = 3 + (defense is KeywordAggregation)  # its final one
    assert len(asked) == answer.model_calls == answer.spending.calls == calls
    assert [report.status for report in answer.groups] == ["supports", *["abstained"] * 4, "supports", "supports"]
    assert [warning for warning in answer.warnings if "blank" in warning] == [f"{NAMED}: a scan without text?"]
    assert not [warning for warning in answer.warnings if "in full" in warning or "empty" in warning]


def test_where_all_passages_are_blank_nothing_is_asked() -> None:
    def ask(prompt: str) -> str:
        raise AssertionError(prompt)

    answer = ConsensusAggregation(CallableModel(ask), group_by="passage").answer("Where?", BLANK)
    assert (answer.abstained, answer.model_calls) == (True, 0)


def test_prompts_that_are_one_batch_stay_together() -> None:
    # Whoever writes a passage must not choose the shape of the batch that the others are read in.
    batches = []

    class Batched(ScriptedModel):
        def generate(self, prompts, role):
            batches.append(len(prompts))
            return super().generate(prompts, role)

    made = ConsensusAggregation(Batched(lambda text: "Rome"), group_by="passage")
    answer = made.answer("Where?", PASSAGES)
    assert (batches, answer.model_calls) == ([7], 7)
    assert [report.status for report in answer.groups].count("abstained") == 4


def test_blank_groups_are_never_waited_for() -> None:
    asked = []
    model = CallableModel(lambda prompt: asked.append(prompt) or "Rome")
    made = MajorityVoting(model, group_by="passage", stop_when_decided=True, wave_size=2)
    answer = made.answer("Where?", [*BLANK, *["Rome."] * 8], choices=["Rome", "Oslo"])
    assert answer.text == "Rome"
    assert len(asked) == answer.model_calls <= 8


class Chat(SimpleChatModel):
    asked: list[Any]

    @property
    def _llm_type(self) -> str:
        return "chat"

    def _call(self, messages, stop=None, run_manager=None, **more) -> str:
        self.asked.append(messages)
        return "Rome"


@pytest.mark.parametrize("template", ["{page_content}", "[{source}] {page_content}"])
def test_langchain_asks_no_model_about_a_blank_document(template: str) -> None:
    chat = Chat(asked=[])
    chain = create_robust_documents_chain(
        chat,
        ChatPromptTemplate.from_template("Answer from {context}. Question: {input}"),
        document_prompt=PromptTemplate.from_template(template),
        return_robustness=True,
        wording="source",
    )
    documents = [Document(text, metadata={"source": f"s{i}"}) for i, text in enumerate(PASSAGES)]
    for found in (
        chain.invoke({"input": "Where?", "context": documents}),
        asyncio.run(chain.ainvoke({"input": "Where?", "context": documents})),
    ):
        assert (found["answer"], found["robustness"].model_calls) == ("Rome", 3)
        assert len([w for w in found["robustness"].warnings if "blank (s1; s2; s3; s4)" in w]) == 1
    assert len(chat.asked) == 6


class Completing(CustomLLM):
    asked: list[Any]

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata()

    def complete(self, prompt, formatted=False, **more) -> CompletionResponse:
        self.asked.append(prompt)
        return CompletionResponse(text="Rome")

    def stream_complete(self, prompt, formatted=False, **more):
        yield self.complete(prompt)


def test_llamaindex_asks_no_model_about_a_blank_node() -> None:
    llm = Completing(asked=[])
    nodes = [
        NodeWithScore(node=TextNode(text=text, metadata={"file_name": f"f{i}"}), score=1.0)
        for i, text in enumerate(PASSAGES)
    ]
    response = RobustRAGSynthesizer(llm=llm).synthesize("Where?", nodes)
    assert str(response) == "Rome"
    assert len(llm.asked) == response.metadata["robustrag"]["model_calls"] == 3
    assert len([w for w in response.metadata["robustrag"]["warnings"] if "passages blank" in w]) == 1
