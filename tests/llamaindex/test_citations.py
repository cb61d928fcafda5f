"""The nodes behind an answer: cited, marked, and shown alone where that is wanted."""

from __future__ import annotations

from typing import Any

import pytest
from llama_index.core.schema import NodeWithScore
from pydantic import BaseModel

from llamaindex_robustrag import (
    RobustCondensePlusContextChatEngine,
    RobustContextChatEngine,
    RobustRAGSynthesizer,
)
from tests.llamaindex.fakes import QUESTION, FactReader, index_of, nodes_of, truthful


def poisoned_nodes() -> list[NodeWithScore]:
    return nodes_of(["The capital of France is Rome.", *truthful()])


def test_a_stream_shows_no_node_before_its_answer_is_complete(llm: FactReader) -> None:
    engine = RobustRAGSynthesizer(llm=llm, streaming=True, supporting_only=True)
    response = engine.synthesize(QUESTION, poisoned_nodes())
    assert response.source_nodes == []
    assert list(response.metadata) == []
    assert "".join(response.response_gen) == "Paris"
    assert len(response.source_nodes) == len(poisoned_nodes()) - 1


@pytest.mark.parametrize("engine_class", [RobustContextChatEngine, RobustCondensePlusContextChatEngine])
async def test_chat_engines_show_supporting_nodes_alone(engine_class: Any, llm: FactReader) -> None:
    retriever = index_of(["The capital of France is Rome.", *truthful()]).as_retriever(similarity_top_k=7)

    def engine() -> Any:  # one each: LlamaIndex's memory has locks that belong to one event loop
        return engine_class.from_defaults(retriever, llm=llm, supporting_only=True)

    replies = [engine().chat(QUESTION), await engine().achat(QUESTION)]
    streamed = [engine().stream_chat(QUESTION)]
    list(streamed[0].response_gen)
    streamed.append(await engine().astream_chat(QUESTION))
    [piece async for piece in streamed[1].async_response_gen()]
    for reply in (*replies, *streamed):
        assert len(reply.source_nodes) == 6
        assert not any("Rome" in node.text for node in reply.source_nodes)
        [retrieved, _] = reply.sources
        assert retrieved.raw_output == reply.source_nodes
        assert "Rome" not in retrieved.content


def test_markers_and_structure_exclude_each_other(llm: FactReader) -> None:
    class City(BaseModel):
        name: str

    with pytest.raises(ValueError, match="citation_markers"):
        RobustRAGSynthesizer(llm=llm, citation_markers=True, output_cls=City)
