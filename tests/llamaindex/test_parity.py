"""On clean input, the same answers as LlamaIndex's own synthesizers, in every call style; on poisoned input, not."""

from __future__ import annotations

import pytest
from llama_index.core import VectorStoreIndex
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.response_synthesizers import BaseSynthesizer, get_response_synthesizer

from llamaindex_robustrag import RobustRAGSynthesizer
from tests.llamaindex.fakes import QUESTION, AsyncFactReader, FactReader

STYLES = ["query", "aquery", "stream", "astream"]
LLMS = [FactReader, AsyncFactReader]


async def ask(index: VectorStoreIndex, synthesizer: BaseSynthesizer, style: str) -> tuple[str, object]:
    """The answer's text in one call style, and the response."""
    engine = RetrieverQueryEngine(index.as_retriever(similarity_top_k=7), response_synthesizer=synthesizer)
    response = await engine.aquery(QUESTION) if style.startswith("a") else engine.query(QUESTION)
    if style == "stream":
        return "".join(response.response_gen), response
    if style == "astream":
        return "".join([piece async for piece in response.async_response_gen()]), response
    return str(response), response


@pytest.mark.parametrize("llm_class", LLMS)
@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("mode", ["compact", "refine"])
async def test_clean_input_gives_what_the_stock_synthesizer_gives(
    clean: VectorStoreIndex, mode: str, style: str, llm_class: type[FactReader]
) -> None:
    llm, streaming = llm_class(), "stream" in style
    expected, kind = await ask(clean, get_response_synthesizer(llm=llm, response_mode=mode, streaming=streaming), style)
    answer, response = await ask(clean, RobustRAGSynthesizer(llm=llm, streaming=streaming), style)
    assert answer == expected == response.metadata["robustrag"]["text"] == "Paris"
    assert type(response) is type(kind)
    assert {n.node.node_id for n in response.source_nodes} == {n.node.node_id for n in kind.source_nodes}


def test_the_swap_of_one_argument_works_through_the_index(poisoned: VectorStoreIndex, llm: FactReader) -> None:
    engine = poisoned.as_query_engine(llm=llm, response_synthesizer=RobustRAGSynthesizer(llm), similarity_top_k=7)
    assert str(engine.query(QUESTION)) == "Paris"
