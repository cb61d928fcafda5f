"""What one document alone says, and what documents say that disagree: for people, and an abstention for models."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from llama_index.core import Document, VectorStoreIndex

from llamaindex_robustrag import (
    RobustCondensePlusContextChatEngine,
    RobustContextChatEngine,
    RobustRAGQueryEngine,
    VoteRules,
)
from tests.llamaindex.fakes import QUESTION, TRUE, FactReader, WordEmbedding
from tests.llamaindex.test_chat_engines import METHODS, say

ENGINES = [RobustContextChatEngine, RobustCondensePlusContextChatEngine]


def index_over(texts: Sequence[str]) -> VectorStoreIndex:
    documents = [Document(text=text, metadata={"file_path": f"{n}.pdf"}) for n, text in enumerate(texts)]
    return VectorStoreIndex.from_documents(documents, embed_model=WordEmbedding())


@pytest.fixture
def index() -> VectorStoreIndex:
    return index_over([TRUE, *(f"The capital question of day {n} is open." for n in range(4))])


TIED = [TRUE, f"{TRUE} So it is.", "The capital of France is Lyon.", "In fact the capital of France is Lyon."]


def engine_of(index: VectorStoreIndex, llm: FactReader, **settings: Any) -> RobustRAGQueryEngine:
    return RobustRAGQueryEngine.from_args(index.as_retriever(similarity_top_k=5), llm=llm, **settings)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("engine_class", ENGINES)
async def test_later_turns_of_a_chat_do_not_read_it(index: VectorStoreIndex, engine_class: type, method: str) -> None:
    for allowed in (False, True):
        llm = FactReader()
        engine: Any = engine_class.from_defaults(  # type: ignore[attr-defined]
            index.as_retriever(similarity_top_k=5), llm=llm, votes=VoteRules(allow_sole_source=allowed)
        )
        text, _ = await say(engine, method, QUESTION)
        assert text == "Paris"
        llm.seen.clear()
        await say(engine, method, "And what is the capital of Spain?")
        told = [prompt for prompt in llm.seen if QUESTION in prompt]
        assert told
        assert any("assistant: Paris" in prompt or "Paris\n" in prompt for prompt in told) is allowed
