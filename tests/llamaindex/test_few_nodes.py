"""Answers from as few nodes as LlamaIndex's retrievers find by default say what to ask for."""

from __future__ import annotations

from typing import Any

import pytest
from llama_index.core.schema import MetadataMode

from llamaindex_robustrag import DiverseRetriever, RobustRAGQueryEngine
from robustrag_integrations.grouping.quotas import SHORTAGE
from tests.llamaindex.fakes import FactReader
from tests.llamaindex.test_diverse import QUERY, corpus, index


def warnings(retriever: Any) -> str:
    engine = RobustRAGQueryEngine.from_args(retriever, llm=FactReader())
    return "\n".join(engine.query(QUERY).metadata["robustrag"]["warnings"])


def test_the_default_number_of_nodes_is_warned_about_with_the_number_to_ask_for() -> None:
    said = warnings(index(corpus(flood=1)).as_retriever())
    assert "found 2 passages; retrievers find 2 unless told otherwise" in said
    assert "as_retriever(similarity_top_k=10)" in said
    assert "DiverseRetriever(retriever, sources=10)" in said


def test_one_source_is_warned_about_however_many_nodes_it_fills() -> None:
    said = warnings(index().as_retriever(similarity_top_k=20))
    assert "all 20 passages are from one group" in said
    assert "found 20 passages of 1 source" in said
    assert "unless told otherwise" not in said


@pytest.mark.parametrize("retriever", ["ten", "diverse"])
def test_enough_sources_are_not_warned_about(retriever: str) -> None:
    ten = index(corpus(flood=1)).as_retriever(similarity_top_k=10)
    assert "DiverseRetriever" not in warnings(ten if retriever == "ten" else DiverseRetriever(index().as_retriever()))


def test_a_shortage_is_said_on_the_answer_and_to_no_model() -> None:
    reader = FactReader()
    engine = RobustRAGQueryEngine.from_args(DiverseRetriever(index(corpus(others=4)).as_retriever()), llm=reader)
    found = engine.query(QUERY)
    said = "\n".join(found.metadata["robustrag"]["warnings"])
    assert "found 5 of the 10 sources wanted" in said
    assert "DiverseRetriever" not in said
    assert all(SHORTAGE not in n.node.get_content(MetadataMode.LLM) for n in found.source_nodes)
