"""Leaks that were once missed, and alarms that were false."""

from __future__ import annotations

import asyncio
import functools
import importlib
import io
import json
import sys
import types
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import numpy
import pytest
from llama_index.core import (
    Document,
    KeywordTableIndex,
    StorageContext,
    SummaryIndex,
    TreeIndex,
    VectorStoreIndex,
    load_index_from_storage,
)
from llama_index.core.agent.workflow import AgentWorkflow, FunctionAgent
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.bridge.pydantic import BaseModel
from llama_index.core.ingestion import IngestionPipeline
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.postprocessor import LongContextReorder, SimilarityPostprocessor
from llama_index.core.query_engine import RetrieverQueryEngine, RouterQueryEngine, ToolRetrieverRouterQueryEngine
from llama_index.core.retrievers import (
    QueryFusionRetriever,
    RecursiveRetriever,
    TransformRetriever,
    VectorIndexRetriever,
)
from llama_index.core.schema import IndexNode, NodeWithScore, QueryBundle
from llama_index.core.selectors import LLMSingleSelector
from llama_index.core.tools import FunctionTool, QueryEngineTool, RetrieverTool
from llama_index.core.tools.ondemand_loader_tool import OnDemandLoaderTool
from llama_index.core.tools.tool_spec.load_and_search.base import LoadAndSearchToolSpec
from llama_index.core.workflow import Context, Event, StartEvent, StopEvent, Workflow, step

from llamaindex_robustrag import (
    DiverseRetriever,
    RobustContextChatEngine,
    RobustRAGQueryEngine,
    RobustRAGSynthesizer,
    find_undefended,
    robust_answer,
)
from llamaindex_robustrag.wiring.holding import held_by
from tests.llamaindex.fakes import EVIL, QUESTION, FactReader, WordEmbedding, index_of, truthful

resource = pytest.importorskip("llama_index.core.workflow.resource")
INDEX = index_of(truthful(3))
RETRIEVER = INDEX.as_retriever()
SYNTHESIZER = RobustRAGSynthesizer(FactReader(), aggregation="keyword", final="always")
ROBUST = RobustRAGQueryEngine.from_args(RETRIEVER, llm=FactReader())
CHAT = RobustContextChatEngine.from_defaults(RETRIEVER, llm=FactReader())


def kinds(thing: object, **arguments: Any) -> list[str]:
    return [finding.kind for finding in find_undefended(thing, **arguments)]


def robust(retriever: Any, **arguments: Any) -> RobustRAGQueryEngine:
    return RobustRAGQueryEngine.from_args(retriever, llm=FactReader(), **arguments)


# Workflows.


def _get_index() -> VectorStoreIndex:
    return INDEX


def _get_engine() -> Any:
    return RobustRAGQueryEngine.from_args(INDEX.as_retriever(), llm=FactReader())


class ByGlobal(Workflow):
    @step
    async def answer(self, event: StartEvent) -> StopEvent:
        return StopEvent(result=str(INDEX.as_query_engine().query("?")))


class ByEvent(Workflow):
    @step
    async def answer(self, event: StartEvent) -> StopEvent:
        nodes = await event.index.as_retriever().aretrieve(event.question)
        return StopEvent(result=str(nodes))


class ByEventEngine(Workflow):
    @step
    async def answer(self, event: StartEvent) -> StopEvent:
        return StopEvent(result=str(await event.get("engine").aquery("?")))


class Question(StartEvent):
    index: Any = None
    store: VectorStoreIndex | None = None


class ByDeclaredEvent(Workflow):
    @step
    async def answer(self, event: Question) -> StopEvent:
        return StopEvent(result=hand_on(event))


class ByGetattr(Workflow):
    @step
    async def answer(self, event: StartEvent) -> StopEvent:
        retriever = getattr(event, "retriever", None)
        nodes = retriever.retrieve("?")  # type: ignore[union-attr]
        return StopEvent(result=nodes)


def hand_on(event: Any) -> str:
    return str(event)


class ByResource(Workflow):
    @step
    async def answer(
        self, event: StartEvent, index: Annotated[VectorStoreIndex, resource.Resource(_get_index)]
    ) -> StopEvent:
        return StopEvent(result=hand_on(index))


class ByState(Workflow):
    @step
    async def answer(self, ctx: Context, event: StartEvent) -> StopEvent:
        held = await ctx.store.get("index")
        return StopEvent(result=str(held.as_retriever().retrieve("?")))


class Middle(Event):
    nodes: Any = None


class ByHelper(Workflow):
    @step
    async def first(self, event: StartEvent) -> Middle:
        return Middle(nodes=self._find("?"))

    @step
    async def second(self, event: Middle) -> StopEvent:
        return StopEvent(result=str(event.nodes))

    def _find(self, question: str) -> list[NodeWithScore]:
        return RETRIEVER.retrieve(question)


@pytest.mark.parametrize(
    "workflow", [ByGlobal, ByEvent, ByEventEngine, ByGetattr, ByDeclaredEvent, ByResource, ByState, ByHelper]
)
def test_a_workflow_that_comes_by_documents_is_found(workflow: type[Workflow]) -> None:
    assert "retrieving-workflow" in kinds(workflow())
    assert kinds(workflow(), trusted=[workflow]) == []


def test_a_free_step_of_a_workflow_is_looked_into() -> None:
    class Empty(Workflow):
        pass

    @step(workflow=Empty)
    async def answer(event: StartEvent) -> StopEvent:
        return StopEvent(result=str(RETRIEVER.retrieve("?")))

    assert kinds(Empty()) == ["retrieving-workflow"]


class Defended(Workflow):
    def __init__(self) -> None:
        super().__init__()
        self._engine = ROBUST

    @step
    async def answer(self, event: StartEvent, engine: Annotated[Any, resource.Resource(_get_engine)]) -> StopEvent:
        made = RobustRAGQueryEngine.from_args(INDEX.as_retriever(similarity_top_k=3), llm=FactReader())
        other = INDEX.as_query_engine(
            response_synthesizer=RobustRAGSynthesizer(FactReader(), aggregation="keyword", final="always")
        )
        said = [await one.aquery(event.question) for one in (self._engine, made, other)]
        said.append(SYNTHESIZER.synthesize(event.question, await RETRIEVER.aretrieve(event.question)))
        return StopEvent(result=str(said))


def test_a_defended_workflow_is_no_alarm() -> None:
    assert kinds(Defended()) == []


# Tools.


def asks_agent(question: str) -> str:
    """Ask."""
    return str(AGENT.run(question))


AGENT = FunctionAgent(
    tools=[RetrieverTool.from_defaults(RETRIEVER, name="r", description="d")], llm=FactReader(), name="a"
)


def loads(question: str) -> str:
    """Load."""
    storage = StorageContext.from_defaults(persist_dir="store")
    return str(load_index_from_storage(storage).as_query_engine().query(question))


def loads_by_import(question: str) -> str:
    """Load."""
    from llama_index.core import VectorStoreIndex as Index

    return str(Index.from_documents([Document(text="?")]).as_retriever().retrieve(question))


def loads_by_helper(question: str) -> str:
    """Load."""
    return str(_loaded().query(question))


def _loaded() -> Any:
    return load_index_from_storage(StorageContext.from_defaults(persist_dir="store")).as_query_engine()


def opens_the_engine(question: str) -> str:
    """Open."""
    return str(ROBUST.retriever.retrieve(question))


def opens_the_engine_by_name(question: str) -> str:
    """Open."""
    return str(ROBUST.retrieve(QueryBundle(question)))


def shows_what_was_outvoted(question: str) -> str:
    """Show."""
    response = ROBUST.query(question)
    texts = [node.node.get_content() for node in response.source_nodes]
    return f"{response}: {texts}"


def shows_all_sources(question: str) -> str:
    """Show."""
    return str(ROBUST.query(question).get_formatted_sources(1000))  # type: ignore[union-attr]


def shows_its_representation(question: str) -> str:
    """Show."""
    return repr(ROBUST.query(question))


def shows_it_in_a_text(question: str) -> str:
    """Show."""
    response = ROBUST.query(question)
    return f"I found {response!r}"


def gives_it_in_a_dict(question: str) -> dict[str, Any]:
    """Show."""
    return {"answer": ROBUST.query(question)}


async def gives_it_with_a_number(question: str) -> Any:
    """Show."""
    response = await ROBUST.aquery(question)
    return response, len(question)


def shows_a_list_of_it(question: str) -> str:
    """Show."""
    found = [ROBUST.query(question)]
    return f"I found {found}"


def shows_what_a_chat_retrieved(question: str) -> str:
    """Show."""
    return CHAT.chat(question).sources[0].content


def shows_all_fields(question: str) -> str:
    """Show."""
    return json.dumps(asdict(ROBUST.query(question)), default=str)  # type: ignore[call-overload]


def shows_its_dict(question: str) -> str:
    """Show."""
    return str(ROBUST.query(question).__dict__)


def shows_the_metadata(question: str) -> str:
    """Show."""
    return f"{ROBUST.query(question).metadata}"


def shows_the_report(question: str) -> str:
    """Show."""
    response = ROBUST.query(question)
    report = (response.metadata or {})["robustrag"]
    return f"{response}: {report}"


def shows_the_groups(question: str) -> str:
    """Show."""
    response = ROBUST.query(question)
    return str(response.metadata["robustrag"]["groups"])  # type: ignore[index]


def explains(question: str) -> str:
    """Explain."""
    answer = robust_answer(ROBUST.query(question))
    return answer.explain() if answer else ""


async def says_how_robust(question: str) -> str:
    """Answer."""
    response = await ROBUST.aquery(question)
    metadata = response.metadata or {}
    if "robustrag" not in metadata:
        return str(response)
    report = metadata["robustrag"]
    answer = robust_answer(response)
    return f"{response} (radius {report['radius']}, {report.get('abstained')}, {answer.radius if answer else 0})"


def joins_several(question: str) -> str:
    """Answer."""
    first, second = ROBUST.query(question), ROBUST.query(question.upper())
    both = [first, ROBUST.query("?")]
    return "; ".join(str(one) for one in (second, *both))


def gives_its_words_in_a_dict(question: str) -> dict[str, Any]:
    """Answer."""
    response = ROBUST.query(question)
    return {"answer": str(response), "all": [response.response]}  # type: ignore[union-attr]


def prints_the_report(question: str) -> str:
    """Answer."""
    response = ROBUST.query(question)
    print(response.metadata)
    return str(response)


def lists_documents() -> str:
    """List."""
    return str(list(INDEX.docstore.docs.values()))


def opens_what_a_helper_gives(question: str) -> str:
    """Open."""
    _index().insert(Document(text=question))
    return str(_index().as_retriever().retrieve(question))


def _index() -> VectorStoreIndex:
    return INDEX


ARRAY = numpy.array([[RETRIEVER, None]], dtype=object)


def looks_into_an_array(question: str) -> str:
    """Look."""
    return str(ARRAY[0][0].retrieve(question))


def first_document() -> str:
    """First."""
    found = INDEX.docstore.docs
    count = len(found)
    return f"{count}: {next(iter(found.values()))}"


def prints_to_a_text(question: str) -> str:
    """Look."""
    written = io.StringIO()
    print(RETRIEVER.retrieve(question), file=written)
    return written.getvalue()


def prints_the_report_to_a_text(question: str) -> str:
    """Look."""
    written, options = io.StringIO(), {}
    response = ROBUST.query(question)
    options["file"] = written
    print(response.metadata, **options)
    return written.getvalue()


@pytest.mark.parametrize(
    "function",
    [
        asks_agent,
        loads,
        loads_by_import,
        loads_by_helper,
        opens_the_engine,
        opens_the_engine_by_name,
        lists_documents,
        shows_what_was_outvoted,
        shows_all_sources,
        shows_its_representation,
        shows_it_in_a_text,
        gives_it_in_a_dict,
        gives_it_with_a_number,
        shows_a_list_of_it,
        shows_what_a_chat_retrieved,
        shows_all_fields,
        shows_its_dict,
        shows_the_metadata,
        shows_the_report,
        shows_the_groups,
        explains,
        prints_to_a_text,
        prints_the_report_to_a_text,
        first_document,
        opens_what_a_helper_gives,
        looks_into_an_array,
    ],
)
def test_a_tool_that_comes_by_documents_is_found(function: Callable[..., Any]) -> None:
    assert kinds(FunctionTool.from_defaults(function))
    assert kinds(FunctionTool.from_defaults(function), trusted=[function]) == []


@pytest.mark.parametrize("method", ["retrieve", "aretrieve"])
def test_the_retrieval_of_a_robust_engine_is_no_tool(method: str) -> None:
    tool = FunctionTool.from_defaults(getattr(ROBUST, method), name="search", description="Searches.")
    assert kinds(tool) == ["retrieving-function"]
    assert kinds(FunctionTool.from_defaults(ROBUST.query, name="search", description="Searches.")) == []


def test_what_an_assertion_complains_of_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [
        "RETRIEVER = None",
        "def counts(question: str) -> int:",
        "    nodes = RETRIEVER.retrieve(question)",
        "    assert len(nodes) > 5",
        "    return len(nodes)",
        "def complains(question: str) -> int:",
        "    nodes = RETRIEVER.retrieve(question)",
        "    assert len(nodes) > 5, nodes",
        "    return len(nodes)",
    ]
    (tmp_path / "asserting.py").write_text("\n".join(lines))  # pytest rewrites assertions here
    monkeypatch.syspath_prepend(str(tmp_path))
    module: Any = importlib.import_module("asserting")
    module.RETRIEVER = RETRIEVER
    assert kinds(FunctionTool.from_defaults(module.counts, description="d")) == []
    assert kinds(FunctionTool.from_defaults(module.complains, description="d")) == ["retrieving-function"]


def test_what_grows_while_it_is_looked_at_is_no_failure() -> None:
    for growing in ({1, 2}, {1: 2}):
        held = held_by(growing)
        next(held)
        growing |= type(growing)([(3, 4)])
        assert list(held)


def inserts(text: str) -> str:
    """Insert."""
    INDEX.insert(Document(text=text.strip(), metadata={"by": "tool"}))
    return "saved"


def inserts_by_helper(text: str) -> str:
    """Insert."""
    return _insert(INDEX, text)


def _insert(index: VectorStoreIndex, text: str) -> str:
    document = Document(text=text)
    index.insert(document)
    index.storage_context.persist(persist_dir="store")
    return document.doc_id


def inserts_into_what_it_loads(text: str) -> str:
    """Insert."""
    storage = StorageContext.from_defaults(persist_dir="store")
    index = load_index_from_storage(storage)
    index.insert(Document(text=text))
    return "saved"


def deletes(name: str) -> None:
    """Delete."""
    if name in INDEX.docstore.docs:
        INDEX.delete_ref_doc(name, delete_from_docstore=True)


def counts() -> int:
    """Count."""
    return len(INDEX.docstore.docs)


def counts_in_words() -> str:
    """Count."""
    docs = INDEX.docstore.docs
    return f"There are {len(docs)} documents, {sum(1 for _ in INDEX.ref_doc_info)} of them whole"


def counts_in_a_loop() -> int:
    """Count."""
    number = 0
    for _ in INDEXES["main"].docstore.docs:
        number += 1
    return number


def inserts_into_one_of_many(text: str) -> str:
    """Insert."""
    INDEXES["main"].insert(Document(text=text))
    return "saved"


INDEXES = {"main": INDEX}


def inserts_into_what_a_helper_gives(text: str) -> str:
    """Insert."""
    _index().insert(Document(text=text))
    return f"{len(_index().docstore.docs)} documents"


@functools.cache
def _index_once() -> VectorStoreIndex:
    return VectorStoreIndex.from_documents([Document(text="?")])


def inserts_into_what_is_loaded_once(text: str) -> str:
    """Insert."""
    index = _index_once()
    index.insert(Document(text=text))
    return "saved"


async def inserts_in_a_thread(text: str) -> str:
    """Insert."""
    await asyncio.to_thread(INDEX.insert, Document(text=text))
    return "saved"


SPLITTER = SentenceSplitter()  # its tokenizer knows a hundred thousand words


def inserts_what_it_splits(text: str) -> str:
    """Insert."""
    nodes = SPLITTER.get_nodes_from_documents([Document(text=text)])
    INDEX.insert_nodes(nodes)
    return f"{len(nodes)} nodes"


async def names_sources(question: str) -> str:
    """Answer."""
    response = await ROBUST.aquery(question)
    names = [node.node_id for node in response.source_nodes]
    return f"{response} ({len(response.source_nodes)} sources: {names})"


def best_score(question: str) -> float:
    """Measure."""
    return max((node.score or 0.0 for node in RETRIEVER.retrieve(question)), default=0.0)


PIPELINE = IngestionPipeline(transformations=[], vector_store=INDEX.vector_store)


def inserts_by_pipeline(text: str) -> str:
    """Insert."""
    return f"{len(PIPELINE.run(documents=[Document(text=text)]))} nodes"


def reads_from_the_pipeline(text: str) -> str:
    """Read."""
    return str(PIPELINE.run(documents=[Document(text=text)]))


def counts_matches(question: str) -> str:
    """Count."""
    return f"{len(RETRIEVER.retrieve(question))} nodes"


async def inserts_later(text: str) -> str:
    """Insert."""
    await INDEX.ainsert(Document(text=text))
    return "saved"


class Notes:
    """Adds to an index, and can read it."""

    def __init__(self, index: VectorStoreIndex) -> None:
        self._index = index

    def add(self, text: str) -> str:
        """Add."""
        self._index.insert(Document(text=self._clean(text)))
        return f"{len(self._index.docstore.docs)} notes"

    def _clean(self, text: str) -> str:
        return text.strip()

    @property
    def index(self) -> VectorStoreIndex:
        """The index."""
        return self._index

    def add_to_property(self, text: str) -> str:
        """Add."""
        self.index.insert(Document(text=text))
        return "saved"

    def read_from_property(self, question: str) -> str:
        """Read."""
        return str(self.index.as_retriever().retrieve(question))

    def read(self, question: str) -> str:
        """Read."""
        return str(self._index.as_retriever().retrieve(question))


@pytest.mark.parametrize(
    "function",
    [
        inserts,
        inserts_by_helper,
        inserts_into_what_it_loads,
        inserts_later,
        deletes,
        counts,
        counts_in_words,
        counts_matches,
        counts_in_a_loop,
        inserts_into_one_of_many,
        inserts_into_what_a_helper_gives,
        inserts_into_what_is_loaded_once,
        inserts_in_a_thread,
        inserts_by_pipeline,
        inserts_what_it_splits,
        best_score,
        names_sources,
        says_how_robust,
        prints_the_report,
        joins_several,
        gives_its_words_in_a_dict,
        INDEX.insert,
        Notes(INDEX).add,
        Notes(INDEX).add_to_property,
        lambda text: INDEX.insert(Document(text=text)),
    ],
)
def test_a_tool_that_only_inserts_or_counts_is_no_alarm(function: Callable[..., Any]) -> None:
    assert kinds(FunctionTool.from_defaults(function, name="n", description="d")) == []


def test_the_method_that_reads_is_found_beside_the_one_that_only_adds() -> None:
    for function in (Notes(INDEX).read, Notes(INDEX).read_from_property, reads_from_the_pipeline):
        assert "retrieving-function" in kinds(FunctionTool.from_defaults(function))


def test_an_index_whose_insert_was_redefined_may_give_texts_back() -> None:
    class Talking(VectorStoreIndex):
        def insert(self, document: Document, **arguments: Any) -> Any:
            return self.docstore.docs

    index = Talking.from_documents([Document(text="?")], embed_model=WordEmbedding())

    def given() -> Any:
        return index

    def saves_by_helper(text: str) -> str:
        """Save."""
        return str(given().insert(Document(text=text)))

    def saves(text: str) -> str:
        """Save."""
        return str(index.insert(Document(text=text)))

    assert kinds(FunctionTool.from_defaults(saves)) == ["retrieving-function"]
    assert kinds(FunctionTool.from_defaults(saves_by_helper)) == ["retrieving-function"]


def test_tools_that_load_and_search_by_themselves_are_found() -> None:
    def docs(topic: str) -> list[Document]:
        """Load."""
        return [Document(text=topic)]

    spec = LoadAndSearchToolSpec.from_defaults(FunctionTool.from_defaults(docs))
    assert kinds(spec) == ["loading-tool"]
    assert kinds(spec.to_tool_list()) == ["loading-tool"]
    assert kinds(FunctionAgent(tools=spec.to_tool_list(), llm=FactReader())) == ["loading-tool"]
    on_demand = OnDemandLoaderTool.from_tool(FunctionTool.from_defaults(docs), name="n", description="d")
    assert kinds(on_demand) == ["loading-tool"]


def test_agents_are_looked_into_through_workflows_and_functions() -> None:
    assert kinds(AgentWorkflow(agents=[AGENT], root_agent="a")) == ["retriever-tool"]
    helper = FunctionAgent(tools=[asks_agent], llm=FactReader())
    assert kinds(helper) == ["retriever-tool"]


# Retrievers.


class Own(BaseRetriever):
    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return []


class Changed(VectorIndexRetriever):
    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return super()._retrieve(query_bundle)


class Renamed(VectorIndexRetriever):
    """The same."""


def _tree() -> TreeIndex:
    return TreeIndex.from_documents([Document(text="A tree.")], llm=FactReader())


def test_retrievers_that_merge_or_read_documents_together_are_found() -> None:
    summary = SummaryIndex.from_documents([Document(text="A text.")])
    tree = _tree()
    for retriever in (
        summary.as_retriever(retriever_mode="llm", llm=FactReader()),
        tree.as_retriever(retriever_mode="all_leaf"),
        tree.as_retriever(retriever_mode="root"),
        tree.as_retriever(retriever_mode="select_leaf", llm=FactReader()),
    ):
        assert kinds(robust(retriever)) == ["joint-retriever"], type(retriever)
        assert kinds(robust(TransformRetriever(retriever, None))) == ["joint-retriever"]
        assert kinds(RobustContextChatEngine.from_defaults(retriever, llm=FactReader())) == ["joint-retriever"]
    keywords = KeywordTableIndex([], llm=FactReader())  # with documents it may load a list of words
    for retriever in (summary.as_retriever(), keywords.as_retriever(), RETRIEVER):
        assert kinds(robust(retriever)) == []
    fused = QueryFusionRetriever([RETRIEVER, tree.as_retriever(retriever_mode="root")], llm=FactReader())
    assert kinds(robust(fused)) == ["joint-retriever"]


def test_graph_and_sql_retrievers_are_found() -> None:
    graphs = pytest.importorskip("llama_index.core.indices.property_graph")
    retriever = graphs.PGRetriever([])
    assert kinds(robust(retriever)) == ["joint-retriever"]
    for name in ("KGTableRetriever", "KnowledgeGraphRAGRetriever"):
        kind = getattr(pytest.importorskip("llama_index.core.indices.knowledge_graph.retrievers"), name)
        assert kinds(robust(kind.__new__(kind))) == ["joint-retriever"]
    sql = pytest.importorskip("llama_index.core.indices.struct_store.sql_retriever")
    for kind in (sql.NLSQLRetriever, sql.SQLRetriever):
        assert kinds(robust(kind.__new__(kind))) == ["joint-retriever"]


def test_a_retriever_of_ones_own_is_reported_until_it_is_trusted() -> None:
    assert kinds(robust(Own())) == ["unknown-retriever"]
    assert kinds(robust(Own()), trusted=[Own]) == []
    changed = Changed(INDEX)
    assert kinds(robust(changed)) == ["overridden"]
    assert kinds(robust(changed), trusted=[Changed]) == []
    assert kinds(robust(Renamed(INDEX))) == []


def test_a_function_that_fetches_is_reported_until_it_is_trusted() -> None:
    def fetch(query: QueryBundle, k: int) -> list[NodeWithScore]:
        return INDEX.as_retriever(similarity_top_k=k).retrieve(query)

    assert kinds(robust(DiverseRetriever(fetch=fetch))) == ["unknown-retriever"]
    assert kinds(robust(DiverseRetriever(fetch=fetch)), trusted=[fetch]) == []
    assert kinds(robust(DiverseRetriever(RETRIEVER))) == []


def test_engines_behind_index_nodes_are_found() -> None:
    stock = INDEX.as_query_engine(llm=FactReader())
    node = IndexNode(text="more", index_id="more", obj=stock)
    index = VectorStoreIndex(objects=[node], embed_model=WordEmbedding())
    assert kinds(robust(index.as_retriever())) == ["engine-as-node", "stock-synthesizer"]
    inner = VectorStoreIndex(objects=[IndexNode(text="m", index_id="m", obj=ROBUST)], embed_model=WordEmbedding())
    assert kinds(robust(inner.as_retriever())) == ["engine-as-node"]
    assert kinds(robust(inner.as_retriever()), trusted=[ROBUST]) == []
    named = RecursiveRetriever("root", retriever_dict={"root": RETRIEVER}, query_engine_dict={"m": ROBUST})
    assert kinds(robust(named)) == []


def test_an_engine_as_a_node_shows_the_metadata_of_one_document_beside_the_answer_of_all() -> None:
    documents = [Document(text=text, metadata={"title": "News"}) for text in truthful(6)]
    documents[5].metadata["title"] = EVIL
    asked = VectorStoreIndex.from_documents(documents, embed_model=WordEmbedding())
    inner = robust(asked.as_retriever(similarity_top_k=6))
    assert str(inner.query(QUESTION)) == "Paris"
    node = IndexNode(text="news", index_id="news", obj=inner)
    outer = robust(VectorStoreIndex(objects=[node], embed_model=WordEmbedding()).as_retriever())
    assert str(outer.query(QUESTION)) == "Berlin"
    assert kinds(outer) == ["engine-as-node"]


# Classes that are changed, or only called like known ones.


def test_a_synthesizer_or_engine_that_redefines_a_method_is_reported() -> None:
    class Loud(RobustRAGSynthesizer):
        def synthesize(self, *arguments: Any, **named: Any) -> Any:
            return super().synthesize(*arguments, **named)

    class Quiet(RobustRAGSynthesizer):
        """The same."""

    def engine(kind: type[RobustRAGSynthesizer]) -> Any:
        return INDEX.as_query_engine(llm=FactReader(), response_synthesizer=kind(FactReader()))

    assert kinds(engine(Loud)) == ["overridden"]
    assert kinds(engine(Loud), trusted=[Loud]) == []
    assert kinds(engine(Quiet)) == []

    class Peeking(RobustRAGQueryEngine):
        def _query(self, query_bundle: QueryBundle) -> Any:
            return self._retriever.retrieve(query_bundle)

    assert kinds(Peeking.from_args(RETRIEVER, llm=FactReader())) == ["overridden"]
    patched = robust(RETRIEVER)
    patched._query = lambda query: None  # type: ignore[method-assign,assignment]
    assert kinds(patched) == ["overridden"]


def test_a_name_is_not_trusted(monkeypatch: pytest.MonkeyPatch) -> None:
    class LongContextReorder(SimilarityPostprocessor):
        def _postprocess_nodes(self, nodes: list[NodeWithScore], query_bundle: Any = None) -> list[NodeWithScore]:
            return nodes

    class CohereRerank(LongContextReorder):
        """Called like one of LlamaIndex's packages."""

    CohereRerank.__module__ = "llama_index.postprocessor.cohere_rerank.base"
    monkeypatch.setitem(sys.modules, CohereRerank.__module__, types.ModuleType(CohereRerank.__module__))
    for kind in (LongContextReorder, CohereRerank):
        assert kinds(robust(RETRIEVER, node_postprocessors=[kind()])) == ["splitting-postprocessor"]

    class LLMSingleSelector(Several):
        """Called like the one that chooses one."""

    tools = [QueryEngineTool.from_defaults(ROBUST, name=name, description="d") for name in ("a", "b")]
    assert kinds(RouterQueryEngine(LLMSingleSelector(), tools, llm=FactReader())) == ["multi-select-router"]


class Several(LLMSingleSelector):
    """Chooses several."""

    def __init__(self) -> None:
        pass

    def _select(self, choices: Any, query: QueryBundle) -> Any:
        return None


def test_a_subclass_of_a_postprocessor_that_redefines_nothing_is_no_alarm() -> None:
    class Strict(SimilarityPostprocessor):
        """With a cutoff of the house."""

        similarity_cutoff: float = 0.4

        @classmethod
        def class_name(cls) -> str:
            return "Strict"

    class Configured(LongContextReorder):
        def __init__(self) -> None:
            super().__init__()

    assert kinds(robust(RETRIEVER, node_postprocessors=[Strict(), Configured()])) == []


# Arguments that as_query_engine drops.


class Capital(BaseModel):
    """A capital."""

    name: str


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("streaming", True),
        ("output_cls", Capital),
        ("text_qa_template", "{context_str}"),
        ("response_mode", "tree_summarize"),
    ],
)
def test_an_argument_that_was_dropped_is_found_by_naming_it(name: str, value: Any) -> None:
    engine = INDEX.as_query_engine(
        llm=FactReader(),
        response_synthesizer=RobustRAGSynthesizer(FactReader(), aggregation="keyword", final="always"),
        **{name: value},
    )
    [finding] = find_undefended(engine, **{name: value})
    assert finding.kind == f"ignored-{name.replace('_', '-')}"
    assert f"{name}=" in finding.problem
    assert kinds(engine) == []


def test_a_router_over_retrieved_tools_cannot_be_checked() -> None:
    engine = ToolRetrieverRouterQueryEngine(
        RETRIEVER,
        llm=FactReader(),
        summarizer=RobustRAGSynthesizer(FactReader(), aggregation="keyword", final="always"),
    )
    assert kinds(engine) == ["tool-retriever"]


def test_a_stock_engine_stays_one() -> None:
    assert kinds(RetrieverQueryEngine.from_args(RETRIEVER, llm=FactReader())) == ["stock-synthesizer"]
