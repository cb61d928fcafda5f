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
    supporting_nodes,
)
from tests.llamaindex.fakes import QUESTION, FactReader, index_of, nodes_of, truthful


def poisoned_nodes() -> list[NodeWithScore]:
    return nodes_of(["The capital of France is Rome.", *truthful()])


async def in_every_way(llm: FactReader, nodes: list[NodeWithScore], **settings: Any) -> list[tuple[list[str], Any]]:
    """The pieces and the response of each way of asking."""
    whole, streaming = (RobustRAGSynthesizer(llm=llm, streaming=s, **settings) for s in (False, True))
    at_once = [whole.synthesize(QUESTION, nodes), await whole.asynthesize(QUESTION, nodes)]
    found: list[tuple[list[str], Any]] = [([str(response)], response) for response in at_once]
    response = streaming.synthesize(QUESTION, nodes)
    found.append((list(response.response_gen), response))
    response = await streaming.asynthesize(QUESTION, nodes)
    found.append(([piece async for piece in response.async_response_gen()], response))
    return found


async def test_supporting_nodes_leave_out_what_was_outvoted(llm: FactReader) -> None:
    nodes = poisoned_nodes()
    for _, response in await in_every_way(llm, nodes):
        assert response.source_nodes == nodes
        assert supporting_nodes(response.metadata["robustrag"], response.source_nodes) == nodes[1:]
    for _, response in await in_every_way(llm, nodes, supporting_only=True):
        assert response.source_nodes == nodes[1:]
        assert nodes[0].node.node_id not in response.metadata


@pytest.mark.parametrize("supporting_only", [False, True])
async def test_positions_are_places_in_the_source_nodes(llm: FactReader, supporting_only: bool) -> None:
    nodes = poisoned_nodes()
    for page, node in enumerate(nodes):
        node.node.metadata["page"] = page
    for _, response in await in_every_way(llm, nodes, supporting_only=supporting_only):
        answer = response.metadata.robust_answer
        cited = [response.source_nodes[at].metadata["page"] for c in answer.citations for at in c.positions]
        assert cited == list(range(1, len(nodes)))
        assert supporting_nodes(answer, response.source_nodes) == nodes[1:]


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


async def test_markers_are_the_same_in_every_way_of_asking(llm: FactReader) -> None:
    numbers = "".join(f"[{n}]" for n in range(1, len(poisoned_nodes())))
    for pieces, response in await in_every_way(llm, poisoned_nodes(), citation_markers=True):
        assert "".join(pieces) == f"Paris {numbers}"
        assert response.metadata["robustrag"]["text"] == "Paris"


def test_markers_and_structure_exclude_each_other(llm: FactReader) -> None:
    class City(BaseModel):
        name: str

    with pytest.raises(ValueError, match="citation_markers"):
        RobustRAGSynthesizer(llm=llm, citation_markers=True, output_cls=City)
