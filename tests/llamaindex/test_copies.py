"""Engines can be copied and pickled as far as LlamaIndex's own can."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import pytest
from llama_index.core.base.llms.types import CompletionResponse, LLMMetadata
from llama_index.core.llms import CustomLLM
from llama_index.core.prompts import PromptTemplate

from llamaindex_robustrag import CallOptions, RobustContextChatEngine, RobustRAGQueryEngine, RobustRAGSynthesizer
from tests.llamaindex.fakes import QUESTION, Capital, index_of, nodes_of, truthful


class Says(CustomLLM):
    """Says Paris, and can be pickled."""

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(model_name="says")

    def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        return CompletionResponse(text='{"name": "Paris"}' if "schema" in prompt else "Paris")

    def stream_complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> Any:
        yield CompletionResponse(text="Paris", delta="Paris")


def pickled(thing: Any) -> Any:
    return pickle.loads(pickle.dumps(thing))


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, pickled])
@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"streaming": True},
        {"output_cls": Capital},
        {
            "text_qa_template": PromptTemplate("{context_str} {query_str}"),
            "calls": CallOptions(num_workers=3, timeout=5.0),
        },
        {"final_llm": Says(), "output_cls": Capital},
    ],
    ids=["plain", "streaming", "structured", "own prompt", "two models"],
)
def test_a_synthesizer_answers_as_before(copied: Callable[[Any], Any], arguments: dict[str, Any]) -> None:
    first = RobustRAGSynthesizer(Says(), **arguments)
    nodes = nodes_of(truthful(3))
    before = first.synthesize(QUESTION, nodes)
    second = copied(first)
    assert second is not first
    after = second.synthesize(QUESTION, nodes)
    if arguments.get("streaming"):
        assert "".join(before.response_gen) == "".join(after.response_gen) == "Paris"
    assert str(after) == str(before)
    assert after.metadata["robustrag"]["settings"] == before.metadata["robustrag"]["settings"]


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, pickled])
def test_an_engine_answers_as_before(copied: Callable[[Any], Any]) -> None:
    engine = RobustRAGQueryEngine.from_args(index_of(truthful(3)).as_retriever(), llm=Says())
    assert str(copied(engine).query(QUESTION)) == "Paris"


def test_a_chat_engine_can_be_pickled_with_a_memory_that_can() -> None:
    engine = RobustContextChatEngine.from_defaults(index_of(truthful(3)).as_retriever(), llm=Says())
    assert str(pickled(engine).chat(QUESTION)) == "Paris"
