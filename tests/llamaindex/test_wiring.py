"""The wiring check: each place where people think they are defended and are not, found with its fix."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from llama_index.core import Document, Settings, VectorStoreIndex
from llama_index.core.agent.workflow import AgentWorkflow, FunctionAgent, ReActAgent
from llama_index.core.bridge.pydantic import BaseModel
from llama_index.core.chat_engine import CondenseQuestionChatEngine, SimpleChatEngine
from llama_index.core.evaluation import RelevancyEvaluator
from llama_index.core.indices.list.retrievers import SummaryIndexLLMRetriever
from llama_index.core.objects import ObjectRetriever, SimpleObjectNodeMapping
from llama_index.core.postprocessor import LLMRerank, LongContextReorder
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.query_engine import (
    MultiStepQueryEngine,
    RetrieverQueryEngine,
    RetryQueryEngine,
    RouterQueryEngine,
    SubQuestionQueryEngine,
    TransformQueryEngine,
)
from llama_index.core.response_synthesizers import get_response_synthesizer
from llama_index.core.retrievers import BaseRetriever, RecursiveRetriever
from llama_index.core.schema import NodeWithScore
from llama_index.core.selectors import LLMMultiSelector, LLMSingleSelector
from llama_index.core.tools import FunctionTool, QueryEngineTool, RetrieverTool

from llamaindex_robustrag import (
    RobustCondensePlusContextChatEngine,
    RobustContextChatEngine,
    RobustRAGQueryEngine,
    RobustRAGSynthesizer,
    UndefendedError,
    assert_defended,
    find_undefended,
)
from tests.llamaindex.fakes import QUESTION, FactReader, index_of
from tests.llamaindex.test_query_engine import OneQuestion


class Answer(BaseModel):
    text: str


class Filtering(BaseNodePostprocessor):
    """A postprocessor of the program's own."""

    def _postprocess_nodes(self, nodes: list[NodeWithScore], query_bundle: Any = None) -> list[NodeWithScore]:
        return nodes


@pytest.fixture
def robust(clean: VectorStoreIndex, llm: FactReader) -> RobustRAGQueryEngine:
    return RobustRAGQueryEngine.from_args(clean.as_retriever(), llm=llm)


@pytest.fixture
def stock(clean: VectorStoreIndex, llm: FactReader) -> RetrieverQueryEngine:
    return clean.as_query_engine(llm=llm)


def kinds(thing: object) -> list[str]:
    return [finding.kind for finding in find_undefended(thing)]


def tool(engine: Any) -> QueryEngineTool:
    return QueryEngineTool.from_defaults(engine, name="t", description="d")


# Each row of the table in turn.


def test_row_an_engine_without_any_llm_fails_in_llama_index_and_not_here(
    clean: VectorStoreIndex, llm: FactReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(*args: object, **kwargs: object) -> None:
        raise ImportError("`llama-index-llms-openai` package not found")

    monkeypatch.setattr(Settings, "_llm", None)
    monkeypatch.setattr("llama_index.core.settings.resolve_llm", missing)
    synthesizer = RobustRAGSynthesizer(llm=llm, aggregation="keyword", final="always")
    with pytest.raises(ImportError, match="openai"):
        clean.as_query_engine(response_synthesizer=synthesizer)
    engine = RobustRAGQueryEngine.from_args(clean.as_retriever(), response_synthesizer=synthesizer)
    assert str(engine.query(QUESTION)) == "Paris"


@pytest.mark.parametrize(
    ("mode", "fix"),
    [
        ("context", "RobustContextChatEngine"),
        ("condense_plus_context", "RobustCondensePlusContextChatEngine"),
        ("best", "RobustCondensePlusContextChatEngine"),
    ],
)
def test_row_a_context_chat_engine_is_undefended(clean: VectorStoreIndex, llm: FactReader, mode: str, fix: str) -> None:
    engine = clean.as_chat_engine(
        chat_mode=mode,
        llm=llm,
        response_synthesizer=RobustRAGSynthesizer(llm=llm, aggregation="keyword", final="always"),
    )
    with pytest.raises(UndefendedError, match=fix) as raised:
        assert_defended(engine)
    assert [f.kind for f in raised.value.findings] == ["context-chat"]


def test_row_condense_question_is_defended(clean: VectorStoreIndex, llm: FactReader) -> None:
    robust = RobustRAGSynthesizer(llm=llm, aggregation="keyword", final="always")
    engine = clean.as_chat_engine(chat_mode="condense_question", llm=llm, response_synthesizer=robust)
    assert_defended(engine)
    stock = clean.as_chat_engine(chat_mode="condense_question", llm=llm)
    assert kinds(stock) == ["stock-synthesizer"]
    assert find_undefended(stock)[0].path == "._query_engine._response_synthesizer"


def test_row_a_router_of_several_choices_merges_and_drops_the_report(
    robust: RobustRAGQueryEngine, llm: FactReader
) -> None:
    two = [tool(robust), tool(RobustRAGQueryEngine.from_args(robust.retriever, llm=llm))]
    alone = RouterQueryEngine(LLMMultiSelector.from_defaults(llm=llm), [tool(robust)], llm=llm)
    assert kinds(alone) == []
    several = RouterQueryEngine(LLMMultiSelector.from_defaults(llm=llm), two, llm=llm)
    [finding] = find_undefended(several)
    assert finding.kind == "multi-select-router"
    assert "LLMSingleSelector" in finding.fix
    one = RouterQueryEngine(LLMSingleSelector.from_defaults(llm=llm), two, llm=llm)
    assert kinds(one) == []
    isolated = RouterQueryEngine(
        LLMMultiSelector.from_defaults(llm=llm),
        two,
        llm=llm,
        summarizer=RobustRAGSynthesizer(llm=llm, aggregation="keyword", final="always"),
    )
    assert kinds(isolated) == []


def test_row_sub_questions_need_robust_inner_engines_and_a_stock_outer_one(
    robust: RobustRAGQueryEngine, stock: RetrieverQueryEngine, llm: FactReader
) -> None:
    def engine(inner: Any, outer: Any) -> SubQuestionQueryEngine:
        return SubQuestionQueryEngine(OneQuestion(), outer, [tool(inner)], use_async=False)

    assert kinds(engine(robust, get_response_synthesizer(llm=llm))) == []
    assert kinds(engine(stock, get_response_synthesizer(llm=llm))) == ["stock-synthesizer"]
    wrong_way_round = find_undefended(
        engine(stock, RobustRAGSynthesizer(llm=llm, aggregation="keyword", final="always"))
    )
    assert [f.kind for f in wrong_way_round] == ["outer-synthesizer", "stock-synthesizer"]
    assert "inner engines" in wrong_way_round[0].fix


@pytest.mark.parametrize("agent_class", [ReActAgent, FunctionAgent])
def test_row_a_retriever_tool_shows_the_agent_everything(
    clean: VectorStoreIndex, robust: RobustRAGQueryEngine, llm: FactReader, agent_class: type
) -> None:
    bare = RetrieverTool.from_defaults(clean.as_retriever(), name="r", description="d")
    assert kinds(bare) == ["retriever-tool"]
    agent = agent_class(name="a", description="d", tools=[tool(robust), bare], llm=llm)
    [finding] = find_undefended(agent)
    assert (finding.kind, finding.path) == ("retriever-tool", ".tools[1]")
    assert "QueryEngineTool.from_defaults(RobustRAGQueryEngine.from_args" in finding.fix
    assert kinds(AgentWorkflow(agents=[agent], root_agent="a")) == ["retriever-tool"]
    assert_defended(agent_class(name="a", description="d", tools=[tool(robust)], llm=llm))


# What else can be wired.


def test_robust_engines_are_defended(clean: VectorStoreIndex, robust: RobustRAGQueryEngine, llm: FactReader) -> None:
    retriever = clean.as_retriever()
    for engine in (
        robust,
        clean.as_query_engine(
            llm=llm, response_synthesizer=RobustRAGSynthesizer(llm=llm, aggregation="keyword", final="always")
        ),
        RobustContextChatEngine.from_defaults(retriever, llm=llm),
        RobustCondensePlusContextChatEngine.from_defaults(retriever, llm=llm),
        CondenseQuestionChatEngine.from_defaults(query_engine=robust, llm=llm),
        SimpleChatEngine.from_defaults(llm=llm),
        tool(robust),
        RobustRAGSynthesizer(llm=llm, aggregation="keyword", final="always"),
        [tool(robust)],
    ):
        assert_defended(engine)


def test_a_stock_engine_is_not(stock: RetrieverQueryEngine) -> None:
    with pytest.raises(UndefendedError, match=r"pass response_synthesizer=RobustRAGSynthesizer\(llm=llm\)"):
        assert_defended(stock)
    with pytest.raises(AssertionError, match="not defended in 1 place"):
        assert_defended(stock)


@pytest.mark.parametrize(
    ("wrap", "expected"),
    [
        (lambda engine, llm: TransformQueryEngine(engine, query_transform=None), []),
        (lambda engine, llm: RetryQueryEngine(engine, RelevancyEvaluator(llm=llm)), ["joint-evaluator"]),
        (
            lambda engine, llm: MultiStepQueryEngine(
                engine, query_transform=None, response_synthesizer=get_response_synthesizer(llm=llm)
            ),
            [],
        ),
    ],
    ids=["transform", "retry", "multi-step"],
)
def test_wrapped_engines_are_looked_into(
    robust: RobustRAGQueryEngine,
    stock: RetrieverQueryEngine,
    llm: FactReader,
    wrap: Callable[[Any, Any], Any],
    expected: list[str],
) -> None:
    assert kinds(wrap(robust, llm)) == expected
    assert kinds(wrap(stock, llm)) == [*expected, "stock-synthesizer"]


def test_a_reranker_that_reads_several_documents_at_once_is_found(clean: VectorStoreIndex, llm: FactReader) -> None:
    engine = RobustRAGQueryEngine.from_args(
        clean.as_retriever(), llm=llm, node_postprocessors=[LLMRerank(llm=llm, top_n=2)]
    )
    assert kinds(engine) == ["joint-reranker"]


def test_ordinary_tools_retrievers_and_postprocessors_are_no_alarm(clean: VectorStoreIndex, llm: FactReader) -> None:
    def remembers(text: str) -> str:
        """Remember."""
        clean.insert(Document(text=text))
        return "remembered"

    class Logging(BaseRetriever):
        def __init__(self, inner: Any) -> None:
            super().__init__()
            self._retriever = inner

        def _retrieve(self, query_bundle: Any) -> list[NodeWithScore]:
            return self._retriever.retrieve(query_bundle)  # type: ignore[no-any-return]

    engine = RobustRAGQueryEngine.from_args(
        Logging(clean.as_retriever()), llm=llm, node_postprocessors=[LongContextReorder(), Filtering()]
    )
    tools = [FunctionTool.from_defaults(remembers), tool(engine)]
    assert_defended(ReActAgent(name="a", description="d", tools=tools, llm=llm))
    joint = SummaryIndexLLMRetriever.__new__(SummaryIndexLLMRetriever)
    assert kinds(RobustRAGQueryEngine.from_args(Logging(joint), llm=llm)) == ["joint-retriever"]


def test_engines_inside_retrievers_are_found(
    clean: VectorStoreIndex, stock: RetrieverQueryEngine, llm: FactReader
) -> None:
    retriever = RecursiveRetriever("root", {"root": clean.as_retriever()}, query_engine_dict={"inner": stock})
    assert kinds(RobustRAGQueryEngine.from_args(retriever, llm=llm)) == ["stock-synthesizer"]


def test_a_part_used_twice_is_reported_once(stock: RetrieverQueryEngine) -> None:
    assert kinds([tool(stock), tool(stock)]) == ["stock-synthesizer"]


def test_a_finding_reads_as_one_line(stock: RetrieverQueryEngine) -> None:
    [finding] = find_undefended(stock)
    assert str(finding).startswith("._response_synthesizer (CompactAndRefine): it puts the texts of several documents")
    assert "\n" not in str(finding)


@pytest.mark.parametrize("thing", [None, "x", FactReader(), index_of(["a"]), [], [None]])
def test_what_answers_no_questions_cannot_be_checked(thing: object) -> None:
    with pytest.raises(TypeError, match="cannot check a"):
        assert_defended(thing)


def test_tools_that_are_found_as_an_agent_runs_are_named(clean: VectorStoreIndex, llm: FactReader) -> None:
    found: Any = ObjectRetriever(clean.as_retriever(), SimpleObjectNodeMapping.from_objects([]))
    assert kinds(ReActAgent(tool_retriever=found, llm=llm)) == ["tool-retriever"]
