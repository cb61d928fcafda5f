"""The query engine of its own, and a robust synthesizer inside LlamaIndex's composed engines, tools and workflows."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import pytest
from llama_index.core import VectorStoreIndex
from llama_index.core.base.base_selector import BaseSelector, SelectorResult, SingleSelection
from llama_index.core.callbacks import CallbackManager
from llama_index.core.chat_engine import CondenseQuestionChatEngine
from llama_index.core.postprocessor import LongContextReorder, SimilarityPostprocessor
from llama_index.core.query_engine import RetrieverQueryEngine, RouterQueryEngine, SubQuestionQueryEngine
from llama_index.core.question_gen.types import BaseQuestionGenerator, SubQuestion
from llama_index.core.response_synthesizers import get_response_synthesizer
from llama_index.core.tools import QueryEngineTool

from llamaindex_robustrag import (
    RobustCondensePlusContextChatEngine,
    RobustContextChatEngine,
    RobustRAGQueryEngine,
    RobustRAGSynthesizer,
)
from tests.llamaindex.fakes import EVIL, QUESTION, FactReader


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
    with pytest.raises(TypeError, match="alpha: pass these to the RobustRAGSynthesizer"):
        RobustRAGQueryEngine.from_args(
            retriever,
            response_synthesizer=RobustRAGSynthesizer(llm=llm),
            alpha=0.5,
        )
    with pytest.raises(TypeError, match="settings: pass these to the RobustRAGSynthesizer"):
        RobustRAGQueryEngine.from_args(retriever, response_synthesizer=RobustRAGSynthesizer(llm=llm), settings="a.yaml")
    other = FactReader()
    with pytest.raises(TypeError, match="llm: pass these to the RobustRAGSynthesizer"):
        RobustRAGQueryEngine.from_args(
            retriever,
            llm=other,
            response_synthesizer=RobustRAGSynthesizer(llm=llm),
        )
    for kind in (RobustContextChatEngine, RobustCondensePlusContextChatEngine):
        with pytest.raises(TypeError, match="llm: pass these to the RobustRAGSynthesizer"):
            kind.from_defaults(
                retriever,
                llm=other,
                response_synthesizer=RobustRAGSynthesizer(llm=llm),
            )
    RobustRAGQueryEngine.from_args(retriever, llm=llm, response_synthesizer=RobustRAGSynthesizer(llm=llm))
    with pytest.raises(TypeError, match="must be a RobustRAGSynthesizer, got CompactAndRefine"):
        RobustRAGQueryEngine.from_args(retriever, response_synthesizer=get_response_synthesizer(llm=llm))


def test_a_stock_synthesizer_is_refused(clean: VectorStoreIndex, llm: FactReader) -> None:
    with pytest.raises(TypeError, match=r"or use RobustRAGQueryEngine\.from_args"):
        RobustRAGQueryEngine(clean.as_retriever(), get_response_synthesizer(llm=llm))
    with pytest.raises(TypeError, match="got NoneType"):
        RobustRAGQueryEngine(clean.as_retriever())


def test_streaming_reaches_a_given_synthesizer_and_leaves_it_as_it_was(
    clean: VectorStoreIndex, llm: FactReader
) -> None:
    given = RobustRAGSynthesizer(llm=llm)
    engine = RobustRAGQueryEngine.from_args(clean.as_retriever(), response_synthesizer=given, streaming=True)
    assert "".join(engine.query(QUESTION).response_gen) == "Paris"
    assert not given.streams


def test_postprocessors_and_the_callback_manager_are_used(poisoned: VectorStoreIndex, llm: FactReader) -> None:
    manager = CallbackManager([])
    postprocessors = [SimilarityPostprocessor(similarity_cutoff=0.5), LongContextReorder()]
    engine = RobustRAGQueryEngine.from_args(
        poisoned.as_retriever(similarity_top_k=7),
        llm=llm,
        node_postprocessors=postprocessors,
        callback_manager=manager,
    )
    response = engine.query(QUESTION)
    assert not any(EVIL in n.node.text for n in response.source_nodes)
    assert engine.callback_manager is manager


def test_with_retriever_keeps_the_defence(engine: RobustRAGQueryEngine, clean: VectorStoreIndex) -> None:
    other = engine.with_retriever(clean.as_retriever(similarity_top_k=3))
    assert isinstance(other, RobustRAGQueryEngine)
    assert len(other.query(QUESTION).metadata["robustrag"]["groups"]) == 3


@pytest.mark.parametrize("style", ["sync", "async"])
async def test_a_robust_summarizer_isolates_what_a_router_merges(tool: QueryEngineTool, style: str) -> None:
    llm = FactReader()
    router = RouterQueryEngine(
        Chosen(0, 1),
        [tool, tool],
        llm=llm,
        summarizer=RobustRAGSynthesizer(llm=llm),
    )
    response = router.query(QUESTION) if style == "sync" else await router.aquery(QUESTION)
    assert str(response) == "I don't know"  # a bare "Paris" is no fact for this reader: each was asked alone
    assert len(llm.seen) == 2


def test_sub_questions_are_answered_robustly_by_the_inner_engine(tool: QueryEngineTool) -> None:
    outer = get_response_synthesizer(llm=FactReader())
    engine = SubQuestionQueryEngine(OneQuestion(), outer, [tool], verbose=False, use_async=False)
    response = engine.query(QUESTION)
    assert any("Response: Paris" in n.node.text for n in response.source_nodes)
    assert not any("Response: Berlin" in n.node.text for n in response.source_nodes)


def test_trap_a_robust_outer_synthesizer_has_only_answers_that_nobody_shares(tool: QueryEngineTool) -> None:
    class Three(OneQuestion):
        def generate(self, tools: Sequence[Any], query: Any) -> list[SubQuestion]:
            return [SubQuestion(sub_question=f"{query.query_str} ({i})", tool_name="robust") for i in range(3)]

    class Unique(FactReader):
        def _said(self, prompt: str) -> str:
            sub_question = re.search(r"\((\d)\)", prompt)
            return ["Oslo", "Lima", "Cairo"][int(sub_question[1])] if sub_question else super()._said(prompt)

    outer = RobustRAGSynthesizer(llm=Unique(), group_by="passage")
    engine = SubQuestionQueryEngine(Three(), outer, [tool], verbose=False, use_async=False)
    assert str(engine.query(QUESTION)).startswith("No two sources agree: Oslo (")


@pytest.mark.parametrize("streaming", [False, True])
@pytest.mark.parametrize("engine_class", [RobustRAGQueryEngine, RetrieverQueryEngine])
def test_the_condense_question_chat_engine_works_and_carries_the_report(
    poisoned: VectorStoreIndex, llm: FactReader, streaming: bool, engine_class: type[RetrieverQueryEngine]
) -> None:
    synthesizer = RobustRAGSynthesizer(llm=llm)
    inner = engine_class(poisoned.as_retriever(similarity_top_k=7), synthesizer)
    chat = CondenseQuestionChatEngine.from_defaults(query_engine=inner, llm=llm)
    if streaming:
        reply = chat.stream_chat(QUESTION)
        assert "".join(reply.response_gen) == "Paris"
    else:
        reply = chat.chat(QUESTION)
        assert str(reply) == "Paris"
    assert reply.sources[0].raw_output.metadata["robustrag"]["text"] == "Paris"
    assert synthesizer.streams is False


def test_unknown_arguments_of_a_synthesis_are_refused(llm: FactReader) -> None:
    synthesizer = RobustRAGSynthesizer(llm, aggregation="voting", choices=["a", "b"])
    with pytest.raises(TypeError, match=r"unknown arguments choises; did you mean choices\?"):
        synthesizer.synthesize("q", [], choises=["c", "d"])
    synthesizer.synthesize("q", [], separator="---")
