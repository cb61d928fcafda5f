"""How likely a model finds a reply, its own or a given one, through an engine: read where an LLM says so."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pytest
from llama_index.core.base.llms.types import ChatMessage, ChatResponse
from llama_index.core.llms.callbacks import llm_chat_callback
from llama_index.core.prompts import ChatPromptTemplate

from llamaindex_robustrag import RobustRAGQueryEngine
from robustrag_integrations import CallableModel
from robustrag_integrations.models.base import Scores
from robustrag_integrations.prompts import Prompt
from tests.llamaindex.fakes import QUESTION, FactReader, index_of

CAPITALS = ["Paris.", "Paris, it says.", "Lyon.", "Lyon, it says.", "Oslo."]
DOCUMENTS = [f"The capital of France is {text}" for text in CAPITALS]


class Telling(FactReader):
    """Gives the log-probabilities of its replies as an OpenAI server does; it is sure of Paris alone."""

    chat_model: bool = True

    @llm_chat_callback()
    def chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponse:
        text = self.answer("\n".join(m.content or "" for m in messages), kwargs)
        logprob = math.log(0.9 if text == "Paris" else 0.2)
        raw = {"choices": [{"logprobs": {"content": [{"token": text, "logprob": logprob}]}}]}
        return ChatResponse(message=ChatMessage(role="assistant", content=text), raw=raw)


def test_the_one_source_of_which_the_model_is_sure_is_heard() -> None:
    texts = ["The capital of France is Paris.", "The capital of France is Lyon.", "Rain falls."]
    engine = RobustRAGQueryEngine.from_args(index_of(texts).as_retriever(similarity_top_k=3), llm=Telling())
    response = engine.query(QUESTION)
    answer = response.metadata.robust_answer
    assert (str(response), answer.radius, answer.sole_source) == ("Paris", 0, "doc-0")
    confident = {g.words: (g.status, g.confidence > 0.5) for g in answer.groups if g.confidence is not None and g.words}
    assert confident == {("Paris",): ("supports", True), ("Lyon",): ("unsure", False)}
    assert [(each.text, each.unsure) for each in answer.dissent] == [("Lyon", True)]


class Scoring(CallableModel):
    """Finds Lyon likelier than Paris, whatever it reads."""

    can_score = True
    scored: list[str]

    def score(self, prompts: Sequence[Prompt], texts: Sequence[str]) -> list[Scores | None]:
        self.scored = [prompt.text for prompt in prompts]
        return [[-1.0 if text == "Lyon" else -3.0 for text in texts] for _ in prompts]


@pytest.mark.parametrize("style", ["query", "aquery"])
@pytest.mark.parametrize("template", [None, ChatPromptTemplate.from_messages([("user", "{context_str} {query_str}")])])
async def test_a_tie_goes_to_what_the_others_find_likelier(style: str, template: Any) -> None:
    reader = FactReader()
    model = Scoring(lambda prompt: reader.answer(prompt, {}), samples=False)
    retriever = index_of(DOCUMENTS).as_retriever(similarity_top_k=5)
    engine = RobustRAGQueryEngine.from_args(retriever, llm=model, text_qa_template=template)
    response = await engine.aquery(QUESTION) if style == "aquery" else engine.query(QUESTION)
    report = response.metadata["robustrag"]
    assert (str(response), report["radius"]) == ("Lyon", 0)
    assert any(
        "a tie, settled by the answer that more of the other sources find likelier" in w for w in report["warnings"]
    )
    assert set(model.scored) <= set(reader.seen)  # as they were asked
    assert any("Oslo" in prompt for prompt in model.scored)
