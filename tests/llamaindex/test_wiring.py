"""The wiring check: each place where people think they are defended and are not, found with its fix."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import pytest
from llama_index.core import Document, Settings, VectorStoreIndex
from llama_index.core.agent.workflow import AgentWorkflow, FunctionAgent, ReActAgent
from llama_index.core.bridge.pydantic import BaseModel
from llama_index.core.chat_engine import CondenseQuestionChatEngine, SimpleChatEngine
from llama_index.core.evaluation import RelevancyEvaluator
from llama_index.core.indices.list.retrievers import SummaryIndexLLMRetriever
from llama_index.core.postprocessor import LLMRerank, LongContextReorder
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.query_engine import (
    CitationQueryEngine,
    CustomQueryEngine,
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
from llama_index.core.workflow import StartEvent, StopEvent, Workflow, step

from llamaindex_robustrag import (
    DiverseRetriever,
    RobustCondensePlusContextChatEngine,
    RobustContextChatEngine,
    RobustRAGQueryEngine,
    RobustRAGSynthesizer,
    UndefendedError,
    assert_defended,
    find_undefended,
)
from tests.llamaindex.fakes import QUESTION, FactReader, index_of
from tests.llamaindex.test_query_engine import Chosen, OneQuestion


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


def kinds(thing: object, **arguments: Any) -> list[str]:
    return [finding.kind for finding in find_undefended(thing, **arguments)]


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
    unknown = RouterQueryEngine(Chosen(0), two, llm=llm)
    assert kinds(unknown) == ["multi-select-router"]
    assert kinds(unknown, trusted=[Chosen]) == []


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


def test_a_citation_engine_is_defended_unless_every_node_has_a_vote(clean: VectorStoreIndex, llm: FactReader) -> None:
    def engine(**arguments: Any) -> CitationQueryEngine:
        synthesizer = RobustRAGSynthesizer(llm=llm, **{"aggregation": "keyword", "final": "always", **arguments})
        return CitationQueryEngine.from_args(clean, llm=llm, response_synthesizer=synthesizer)

    assert kinds(engine()) == []
    assert kinds(engine(group_by="passage")) == ["split-nodes"]
    assert kinds(CitationQueryEngine.from_args(clean, llm=llm)) == ["stock-synthesizer"]


def test_a_reranker_that_reads_several_documents_at_once_is_found(clean: VectorStoreIndex, llm: FactReader) -> None:
    engine = RobustRAGQueryEngine.from_args(
        clean.as_retriever(), llm=llm, node_postprocessors=[LLMRerank(llm=llm, top_n=2)]
    )
    assert kinds(engine) == ["joint-reranker"]


def test_functions_are_judged_by_what_they_hold(
    clean: VectorStoreIndex, robust: RobustRAGQueryEngine, stock: RetrieverQueryEngine
) -> None:
    retriever = clean.as_retriever()

    def looks_up(question: str) -> str:
        """Look up."""
        return "\n".join(n.text for n in retriever.retrieve(question))

    def asks_stock(question: str) -> str:
        """Ask."""
        return str(stock.query(question))

    class Service:
        def __init__(self, retriever: Any) -> None:
            self.retriever = retriever

        def looks_up(self, question: str) -> str:
            """Look up."""
            return str(self.retriever.retrieve(question))

    held = functools.partial(lambda source, question: str(source.retrieve(question)), retriever)
    raw = [looks_up, functools.partial(looks_up), held, retriever.retrieve, Service(retriever).looks_up]
    for function in raw:
        made = FunctionTool.from_defaults(function, name="n", description="d")
        assert kinds(made) == kinds(function) == ["retrieving-function"], function
        assert kinds(made, trusted=[made]) == []
    assert kinds(FunctionTool.from_defaults(asks_stock)) == ["stock-synthesizer"]
    assert kinds(FunctionTool.from_defaults(async_fn=aasks_of(stock), name="n", description="d")) == [
        "stock-synthesizer"
    ]


def aasks_of(engine: Any) -> Any:
    async def asks(question: str) -> str:
        return str(await engine.aquery(question))

    return asks


def test_ordinary_tools_retrievers_and_postprocessors_are_no_alarm(
    clean: VectorStoreIndex, robust: RobustRAGQueryEngine, llm: FactReader, caplog: pytest.LogCaptureFixture
) -> None:
    def add(first: int, second: int) -> int:
        """Add."""
        return first + second

    def answers(question: str) -> dict[str, Any]:
        """Answer, and name the files."""
        response = robust.query(question)
        files = [c["origins"] for c in response.metadata["robustrag"]["citations"]]
        return {"answer": str(response), "files": files, "nodes": len(clean.as_retriever().retrieve(question))}

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

    tools = [FunctionTool.from_defaults(f) for f in (add, answers, remembers)]
    engine = RobustRAGQueryEngine.from_args(
        Logging(clean.as_retriever()), llm=llm, node_postprocessors=[LongContextReorder(), Filtering()]
    )
    agent = ReActAgent(name="a", description="d", tools=[*tools, tool(engine)], llm=llm)
    found = find_undefended(agent)
    assert found == []
    assert len(found.not_looked_into) == 5
    assert_defended(agent)
    assert "._retriever (test_ordinary" in caplog.text or "._retriever (Logging)" in caplog.text
    assert "._node_postprocessors[1] (Filtering)" in caplog.text
    assert "audit_isolation()" in caplog.text
    stock_inside = RobustRAGQueryEngine.from_args(
        Logging(SummaryIndexLLMRetriever.__new__(SummaryIndexLLMRetriever)), llm=llm
    )
    assert kinds(stock_inside) == ["joint-retriever"]


def test_an_agent_given_bare_functions_is_looked_into(clean: VectorStoreIndex, llm: FactReader) -> None:
    retriever = clean.as_retriever()

    def looks_up(question: str) -> str:
        """Look up."""
        return str(retriever.retrieve(question))

    assert kinds(ReActAgent(name="a", description="d", tools=[looks_up], llm=llm)) == ["retrieving-function"]


def test_engines_inside_retrievers_are_found(
    clean: VectorStoreIndex, stock: RetrieverQueryEngine, llm: FactReader
) -> None:
    retriever = RecursiveRetriever("root", {"root": clean.as_retriever()}, query_engine_dict={"inner": stock})
    assert kinds(RobustRAGQueryEngine.from_args(retriever, llm=llm)) == ["stock-synthesizer"]
    diverse = DiverseRetriever(retriever)
    assert kinds(RobustRAGQueryEngine.from_args(diverse, llm=llm)) == ["stock-synthesizer"]


def test_an_engine_of_ones_own_is_not_vouched_for(clean: VectorStoreIndex) -> None:
    class Own(CustomQueryEngine):
        def custom_query(self, query_str: str) -> str:
            return "?"

    class Redefining(RetrieverQueryEngine):
        def query(self, *args: Any, **kwargs: Any) -> Any:
            return "?"

    assert kinds(Own()) == ["unknown"]
    assert kinds(Own(), trusted=[Own]) == []
    assert kinds(Redefining(clean.as_retriever(), get_response_synthesizer(llm=FactReader()))) == ["unknown"]


def test_a_workflow_is_looked_into(clean: VectorStoreIndex, robust: RobustRAGQueryEngine, llm: FactReader) -> None:
    class Answering(Workflow):
        def __init__(self, part: Any) -> None:
            super().__init__()
            self.part = part

        @step
        async def answer(self, event: StartEvent) -> StopEvent:
            return StopEvent(result=None)

    assert kinds(Answering(robust)) == []
    assert kinds(Answering(get_response_synthesizer(llm=llm))) == ["stock-synthesizer"]
    assert find_undefended(Answering(clean.as_retriever())).not_looked_into == ["here (Answering)"]


def test_a_part_used_twice_is_reported_once(stock: RetrieverQueryEngine) -> None:
    assert kinds([tool(stock), tool(stock)]) == ["stock-synthesizer"]


@pytest.mark.parametrize("thing", [None, "x", b"x", 3, FactReader(), index_of(["a"]), [None], ["x"], [index_of(["a"])]])
def test_what_answers_no_questions_cannot_be_checked(thing: object) -> None:
    with pytest.raises(TypeError, match=r"cannot check a .*; pass the query engine"):
        assert_defended(thing)


@pytest.mark.parametrize("trusted", ["x", ["x"], 3])
def test_a_name_is_not_trusted(robust: RobustRAGQueryEngine, trusted: Any) -> None:
    with pytest.raises(TypeError, match="trusted="):
        assert_defended(robust, trusted=trusted)


def test_a_finding_reads_as_one_line(stock: RetrieverQueryEngine) -> None:
    [finding] = find_undefended(stock)
    assert str(finding).startswith("._response_synthesizer (CompactAndRefine): it puts the texts of several documents")
    assert "\n" not in str(finding)


def test_nothing_is_not_defended() -> None:
    with pytest.raises(TypeError, match="nothing to check in an empty list"):
        assert_defended([])
