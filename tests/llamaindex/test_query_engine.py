"""The query engine of its own: its parts go together, and the defence stays."""

from __future__ import annotations

from typing import Any

import pytest
from llama_index.core import VectorStoreIndex
from llama_index.core.response_synthesizers import get_response_synthesizer

from llamaindex_robustrag import RobustContextChatEngine, RobustRAGQueryEngine, RobustRAGSynthesizer
from tests.llamaindex.fakes import QUESTION, FactReader


@pytest.mark.parametrize("make", [RobustRAGQueryEngine.from_args, RobustContextChatEngine.from_defaults])
def test_settings_go_to_the_synthesizer_and_not_beside_one(make: Any, clean: VectorStoreIndex, llm: FactReader) -> None:
    retriever, given = clean.as_retriever(), RobustRAGSynthesizer(llm=llm)
    assert make(retriever, llm=llm, response_synthesizer=given)
    for name, value in {"alpha": 0.5, "settings": "a.yaml", "llm": FactReader()}.items():
        with pytest.raises(TypeError, match=f"{name}: pass it to the RobustRAGSynthesizer"):
            make(retriever, response_synthesizer=given, **{name: value})
    with pytest.raises(TypeError, match="must be a RobustRAGSynthesizer, got CompactAndRefine"):
        make(retriever, response_synthesizer=get_response_synthesizer(llm=llm))


def test_streaming_and_another_retriever_keep_the_defence(clean: VectorStoreIndex, llm: FactReader) -> None:
    given = RobustRAGSynthesizer(llm=llm, method="keyword", alpha=0.5)
    engine = RobustRAGQueryEngine.from_args(clean.as_retriever(), response_synthesizer=given, streaming=True)
    other = engine.with_retriever(clean.as_retriever(similarity_top_k=3))
    assert isinstance(other, RobustRAGQueryEngine)
    response = other.query(QUESTION)
    assert "".join(response.response_gen) == "Paris"
    assert response.metadata["robustrag"]["settings"]["alpha"] == "1/2"
    assert len(response.metadata["robustrag"]["sources"]) == 3
    assert not given.streams
