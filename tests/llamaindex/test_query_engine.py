"""The query engine of its own, and a robust synthesizer inside LlamaIndex's composed engines, tools and workflows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from llama_index.core import VectorStoreIndex
from llama_index.core.base.base_selector import BaseSelector, SelectorResult, SingleSelection
from llama_index.core.question_gen.types import BaseQuestionGenerator, SubQuestion
from llama_index.core.response_synthesizers import get_response_synthesizer
from llama_index.core.tools import QueryEngineTool

from llamaindex_robustrag import (
    RobustCondensePlusContextChatEngine,
    RobustContextChatEngine,
    RobustRAGQueryEngine,
    RobustRAGSynthesizer,
)
from tests.llamaindex.fakes import QUESTION, FactReader


class Chosen(BaseSelector):
    """Selects the same engines every time."""

    def __init__(self, *indices: int) -> None:
        self._result = SelectorResult(selections=[SingleSelection(index=i, reason="because") for i in indices])

    def _get_prompts(self) -> dict[str, Any]:
        return {}

    def _update_prompts(self, prompts: dict[str, Any]) -> None:
        pass

    def _select(self, choices: Sequence[Any], query: Any) -> SelectorResult:
        return self._result

    async def _aselect(self, choices: Sequence[Any], query: Any) -> SelectorResult:
        return self._result


class OneQuestion(BaseQuestionGenerator):
    """Breaks every question into itself."""

    def _get_prompts(self) -> dict[str, Any]:
        return {}

    def _update_prompts(self, prompts: dict[str, Any]) -> None:
        pass

    def generate(self, tools: Sequence[Any], query: Any) -> list[SubQuestion]:
        return [SubQuestion(sub_question=query.query_str, tool_name="robust")]

    async def agenerate(self, tools: Sequence[Any], query: Any) -> list[SubQuestion]:
        return self.generate(tools, query)


@pytest.fixture
def engine(poisoned: VectorStoreIndex, llm: FactReader) -> RobustRAGQueryEngine:
    return RobustRAGQueryEngine.from_args(poisoned.as_retriever(similarity_top_k=7), llm=llm)


@pytest.fixture
def tool(engine: RobustRAGQueryEngine) -> QueryEngineTool:
    return QueryEngineTool.from_defaults(engine, name="robust", description="capitals")


def test_from_args_passes_settings_on_and_refuses_what_excludes_each_other(
    clean: VectorStoreIndex, llm: FactReader
) -> None:
    retriever = clean.as_retriever()
    engine = RobustRAGQueryEngine.from_args(retriever, llm=llm, alpha=0.5, group_by="passage", streaming=True)
    report = engine.query(QUESTION)
    assert list(report.response_gen)
    assert report.metadata["robustrag"]["settings"]["alpha"] == "1/2"
    with pytest.raises(TypeError, match="alpha: pass it to the RobustRAGSynthesizer"):
        RobustRAGQueryEngine.from_args(
            retriever,
            response_synthesizer=RobustRAGSynthesizer(llm=llm),
            alpha=0.5,
        )
    with pytest.raises(TypeError, match="settings: pass it to the RobustRAGSynthesizer"):
        RobustRAGQueryEngine.from_args(retriever, response_synthesizer=RobustRAGSynthesizer(llm=llm), settings="a.yaml")
    other = FactReader()
    with pytest.raises(TypeError, match="llm: pass it to the RobustRAGSynthesizer"):
        RobustRAGQueryEngine.from_args(
            retriever,
            llm=other,
            response_synthesizer=RobustRAGSynthesizer(llm=llm),
        )
    for kind in (RobustContextChatEngine, RobustCondensePlusContextChatEngine):
        with pytest.raises(TypeError, match="llm: pass it to the RobustRAGSynthesizer"):
            kind.from_defaults(
                retriever,
                llm=other,
                response_synthesizer=RobustRAGSynthesizer(llm=llm),
            )
    RobustRAGQueryEngine.from_args(retriever, llm=llm, response_synthesizer=RobustRAGSynthesizer(llm=llm))
    with pytest.raises(TypeError, match="must be a RobustRAGSynthesizer, got CompactAndRefine"):
        RobustRAGQueryEngine.from_args(retriever, response_synthesizer=get_response_synthesizer(llm=llm))


def test_streaming_reaches_a_given_synthesizer_and_leaves_it_as_it_was(
    clean: VectorStoreIndex, llm: FactReader
) -> None:
    given = RobustRAGSynthesizer(llm=llm)
    engine = RobustRAGQueryEngine.from_args(clean.as_retriever(), response_synthesizer=given, streaming=True)
    assert "".join(engine.query(QUESTION).response_gen) == "Paris"
    assert not given.streams


def test_with_retriever_keeps_the_defence(engine: RobustRAGQueryEngine, clean: VectorStoreIndex) -> None:
    other = engine.with_retriever(clean.as_retriever(similarity_top_k=3))
    assert isinstance(other, RobustRAGQueryEngine)
    assert len(other.query(QUESTION).metadata["robustrag"]["groups"]) == 3


def test_unknown_arguments_of_a_synthesis_are_refused(llm: FactReader) -> None:
    synthesizer = RobustRAGSynthesizer(llm, aggregation="voting", choices=["a", "b"])
    with pytest.raises(TypeError, match=r"unknown arguments choises; did you mean choices\?"):
        synthesizer.synthesize("q", [], choises=["c", "d"])
    synthesizer.synthesize("q", [], separator="---")
