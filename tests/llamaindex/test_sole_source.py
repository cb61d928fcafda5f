"""What one document alone says: shown to the user, and an abstention wherever another model would read it."""

from __future__ import annotations

from typing import Any

import pytest
from llama_index.core import Document, VectorStoreIndex

from llamaindex_robustrag import (
    RobustCondensePlusContextChatEngine,
    RobustContextChatEngine,
    RobustQueryEngineTool,
    RobustRAGQueryEngine,
    RobustRAGSynthesizer,
    VoteRules,
)
from tests.llamaindex.fakes import QUESTION, TRUE, FactReader, WordEmbedding
from tests.llamaindex.test_chat_engines import METHODS, say

ENGINES = [RobustContextChatEngine, RobustCondensePlusContextChatEngine]


@pytest.fixture
def index() -> VectorStoreIndex:
    texts = [TRUE, *(f"The capital question of day {n} is open." for n in range(4))]
    documents = [Document(text=text, metadata={"file_path": f"{n}.pdf"}) for n, text in enumerate(texts)]
    return VectorStoreIndex.from_documents(documents, embed_model=WordEmbedding())


def engine_of(index: VectorStoreIndex, llm: FactReader, **settings: Any) -> RobustRAGQueryEngine:
    return RobustRAGQueryEngine.from_args(index.as_retriever(similarity_top_k=5), llm=llm, **settings)


@pytest.mark.parametrize("streaming", [False, True])
def test_an_engine_for_prompts_withholds_it_and_the_same_engine_shows_it(
    index: VectorStoreIndex, llm: FactReader, streaming: bool
) -> None:
    engine = engine_of(index, llm, streaming=streaming)
    shown = engine.query(QUESTION)
    assert str(shown) == "Paris"
    assert shown.metadata["robustrag"]["sole_source"] == "0.pdf"
    told = engine_of(index, llm, streaming=streaming, reader="model").query(QUESTION)
    assert str(told) == "I don't know"
    assert "allow_sole_source=True" in told.metadata["robustrag"]["warnings"][-1]


def test_so_does_any_engine_over_such_a_synthesizer(index: VectorStoreIndex, llm: FactReader) -> None:
    told = RobustRAGSynthesizer(llm=llm, reader="model")
    engine = index.as_query_engine(llm=llm, response_synthesizer=told, similarity_top_k=5)
    assert str(engine.query(QUESTION)) == "I don't know"


async def test_so_it_does_without_blocking_the_loop(index: VectorStoreIndex, llm: FactReader) -> None:
    assert str(await engine_of(index, llm, reader="model").aquery(QUESTION)) == "I don't know"


def test_the_tool_tells_an_agent_nothing_of_it(index: VectorStoreIndex, llm: FactReader) -> None:
    tool = RobustQueryEngineTool.from_defaults(engine_of(index, llm), name="facts", description="facts")
    output = tool.call(QUESTION)
    assert output.is_error
    assert (str(output.raw_output), "withheld" in output.content) == ("I don't know", True)
    allowed = engine_of(index, llm, votes=VoteRules(allow_sole_source=True))
    assert RobustQueryEngineTool.from_defaults(allowed).call(QUESTION).content == "Paris"


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
