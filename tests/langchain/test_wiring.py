"""The static wiring check: known parts that show documents to a model are found, the rest is named or refused."""

from __future__ import annotations

import functools
import logging
from operator import itemgetter
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.language_models import FakeListChatModel
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import Runnable, RunnableBranch, RunnableLambda, RunnableParallel, RunnablePassthrough
from langchain_core.tools import BaseTool, StructuredTool, create_retriever_tool, tool
from langchain_core.vectorstores import InMemoryVectorStore
from typing_extensions import TypedDict

from langchain_robustrag import (
    UndefendedError,
    assert_defended,
    create_robust_documents_chain,
    create_robust_node,
    create_robust_retrieval_chain,
    create_robust_retriever_tool,
    find_undefended,
)
from tests.langchain.fakes import PROMPT, ListRetriever, Reader, truthful
from tests.langchain.test_agents import GullibleAgent

pytest.importorskip("langchain.agents", reason="needs langchain 1.x")
pytest.importorskip("langchain_classic", reason="needs langchain-classic")
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware, SummarizationMiddleware, TodoListMiddleware, dynamic_prompt
from langchain_classic.chains import RetrievalQA, create_history_aware_retriever, create_retrieval_chain
from langchain_classic.chains.combine_documents import create_stuff_documents_chain
from langchain_classic.retrievers import ContextualCompressionRetriever, EnsembleRetriever
from langchain_classic.retrievers.document_compressors import (
    DocumentCompressorPipeline,
    LLMChainFilter,
    LLMListwiseRerank,
)
from langgraph.graph import END, START, MessagesState, StateGraph

from langchain_robustrag.classic import RobustDocumentsChain
from langchain_robustrag.middleware import RobustRetrievalMiddleware
from tests.langchain.tool_nodes import ToolNode

pytestmark = pytest.mark.filterwarnings("ignore::langchain_core._api.LangChainBetaWarning")
RETRIEVER = ListRetriever(documents=truthful())
STORE = InMemoryVectorStore(DeterministicFakeEmbedding(size=4))
LLM = Reader()
ROBUST = create_robust_documents_chain(LLM, PROMPT)
RAG = create_robust_retrieval_chain(RETRIEVER, LLM)
SEARCH = create_retriever_tool(RETRIEVER, "search", "Searches.", response_format="content_and_artifact")
ROBUST_SEARCH = create_robust_retriever_tool(RETRIEVER, LLM, "search", "Searches.")
CONDENSE = ChatPromptTemplate.from_messages([("placeholder", "{chat_history}"), ("human", "{input}")])


def joined(documents: list[Document]) -> str:
    return "\n\n".join(d.page_content for d in documents)


class Service:
    """An object of the program's own that retrieves."""

    def __init__(self, retriever: Any) -> None:
        self.retriever = retriever

    def lookup(self, query: str) -> str:
        return joined(self.retriever.invoke(query))


SERVICE = Service(RETRIEVER)


def helper(query: str) -> str:
    return SERVICE.lookup(query)


class OwnRunnable(Runnable[str, Any]):
    def invoke(self, input: str, config: Any = None, **kwargs: Any) -> Any:
        return LLM.invoke(joined(RETRIEVER.invoke(input)))


class Logging(ListRetriever):
    """A retriever that only logs."""

    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        logging.getLogger(__name__).info("asked %s", query)
        return super()._get_relevant_documents(query, run_manager=run_manager)


class Choosing(Reader):
    def with_structured_output(self, schema: Any, **kwargs: Any) -> Any:
        return self | RunnableLambda(lambda message: schema(ranked_document_ids=[0]))


def compressed(compressor: Any) -> Any:
    return ContextualCompressionRetriever(base_compressor=compressor, base_retriever=RETRIEVER)


LISTWISE = LLMListwiseRerank.from_llm(Choosing())
RAW: dict[str, Any] = {
    "own runnable": OwnRunnable(),
    "lcel": {"context": RETRIEVER | joined, "input": RunnablePassthrough()} | PROMPT | LLM | StrOutputParser(),
    "assign": RunnablePassthrough.assign(context=itemgetter("input") | RETRIEVER) | PROMPT | LLM,
    "assign and format": RunnablePassthrough.assign(context=RETRIEVER) | (lambda x: joined(x["context"])) | LLM,
    "stuff": create_retrieval_chain(RETRIEVER, create_stuff_documents_chain(LLM, PROMPT)),
    "stuff alone": create_stuff_documents_chain(LLM, PROMPT),
    "vector store": {"context": STORE.as_retriever() | joined, "input": RunnablePassthrough()} | PROMPT | LLM,
    "lambda": RunnableLambda(lambda q: {"context": joined(RETRIEVER.invoke(q)), "input": q}) | PROMPT | LLM,
    "bound method": RunnableLambda(SERVICE.lookup) | (lambda text: {"context": text, "input": "q"}) | PROMPT | LLM,
    "helper": RunnableLambda(helper) | LLM,
    "partial": RunnableLambda(functools.partial(lambda store, q: store.search(q, "mmr"), STORE)) | LLM,
    "default": RunnableLambda(lambda q, r=RETRIEVER: r.invoke(q)) | joined | LLM,
    "one function": RunnableLambda(lambda q: LLM.invoke(joined(RETRIEVER.invoke(q)))),
    "a bare function": lambda q: LLM.invoke(joined(RETRIEVER.invoke(q))),
    "fallbacks": (RETRIEVER | joined).with_fallbacks([RunnableLambda(lambda q: "")]) | LLM,
    "branch": RunnableBranch((lambda x: bool(x), RETRIEVER | joined), RunnableLambda(str)) | LLM,
    "retry and config": (RETRIEVER | joined).with_retry().with_config(tags=["t"]) | LLM.with_retry(),
    "map": RETRIEVER | RunnableLambda(lambda d: d.page_content).map() | RunnableLambda("\n".join) | LLM,
    "the context of ours": RAG | ChatPromptTemplate.from_template("Rephrase {answer} with {context}") | LLM,
    "before ours": {"input": RunnablePassthrough(), "notes": RETRIEVER}
    | create_robust_retrieval_chain(RETRIEVER, LLM, ChatPromptTemplate.from_template("{context} {notes} {input}")),
    "another input": RunnablePassthrough.assign(context=RETRIEVER, notes=RETRIEVER)
    | create_robust_documents_chain(LLM, ChatPromptTemplate.from_template("{context} {notes} {input}")),
    "classic": RetrievalQA.from_chain_type(LLM, retriever=RETRIEVER),
    "tool in a chain": RunnableLambda(lambda q: q) | SEARCH | LLM,
    "reranker": create_robust_retrieval_chain(compressed(LISTWISE), LLM),
    "reranker in a pipeline": create_retrieval_chain(
        compressed(DocumentCompressorPipeline(transformers=[LISTWISE])), ROBUST
    ),
    "agent": create_agent(GullibleAgent(), [SEARCH]),
    "agent, a chain as a tool": create_agent(
        GullibleAgent(), [(RETRIEVER | joined).as_tool(name="search", description="S.", arg_types={"query": str})]
    ),
    "agent, a service": create_agent(
        GullibleAgent(), [StructuredTool.from_function(SERVICE.lookup, name="search", description="S.")]
    ),
    "tool node": StateGraph(MessagesState).add_node("tools", ToolNode([SEARCH])),
}


class State(TypedDict, total=False):
    input: str
    context: list[Document]
    answer: str


def graph_of(**nodes: Any) -> Any:
    builder = StateGraph(State)
    previous = START
    for name, node in nodes.items():
        builder.add_node(name, node)
        builder.add_edge(previous, name)
        previous = name
    builder.add_edge(previous, END)
    return builder.compile()


def both(state: State) -> dict[str, Any]:
    return {"answer": LLM.invoke(joined(RETRIEVER.invoke(state["input"])))}


RAW |= {"graph": graph_of(both=both), "inner graph": graph_of(inner=graph_of(both=both))}


@pytest.mark.parametrize("name", RAW)
def test_known_parts_that_show_documents_to_a_model_are_found(name: str) -> None:
    found = find_undefended(RAW[name])
    assert found, name
    assert all(f.fix and f.problem and str(f) for f in found)
    assert_defended(RAW[name], trusted=[RAW[name]])


@tool
def add(a: int, b: int) -> int:
    """Add."""
    return a + b


@tool
def remember(text: str) -> str:
    """Remember."""
    STORE.add_documents([Document(text)])
    return "remembered"


@tool
def answer_and_files(query: str) -> dict[str, Any]:
    """Answer robustly, and name the files."""
    found = RAG.invoke({"input": query})
    return {"answer": found["answer"], "files": [origin for c in found["robustness"].citations for origin in c.origins]}


@tool
def weather(place: str) -> str:
    """Tell the weather."""
    import urllib.request

    return str(urllib.request.urlopen(f"https://weather.example/{place}").read())


class ToolClass(BaseTool):
    name: str = "tool"
    description: str = "Does something."

    def _run(self, query: str) -> str:
        return query


ORDINARY: list[Any] = [ROBUST_SEARCH, add, remember, answer_and_files, weather, ToolClass()]
CLEAN: dict[str, Any] = {
    "retrieval chain": create_retrieval_chain(RETRIEVER, ROBUST),
    "own": create_robust_retrieval_chain(Logging(documents=[]), LLM, group_by="source"),
    "history": create_retrieval_chain(create_history_aware_retriever(LLM, RETRIEVER, CONDENSE), ROBUST),
    "own with history": create_robust_retrieval_chain(create_history_aware_retriever(LLM, RETRIEVER, CONDENSE), LLM),
    "assign": RunnablePassthrough.assign(context=itemgetter("input") | RETRIEVER) | ROBUST | StrOutputParser(),
    "lambda before": RunnableLambda(lambda q: {"context": RETRIEVER.invoke(q), "input": q}) | ROBUST,
    "answer to another model": RAG | ChatPromptTemplate.from_template("Translate {answer}") | LLM,
    "rewritten answer": create_retrieval_chain(RETRIEVER, ROBUST) | (lambda x: f"Translate {x['answer']}") | LLM,
    "picked": RAG.pick("answer") | StrOutputParser() | LLM,
    "got": RAG | itemgetter("answer") | LLM,
    "citations": RAG | (lambda x: [c.origins for c in x["robustness"].citations]),
    "rewritten query": CONDENSE | LLM | StrOutputParser() | RETRIEVER,
    "wrapped": ROBUST.with_retry().with_config(tags=["t"]),
    "parallel": RunnableParallel(robust=RAG, plain=PROMPT.partial(context="") | LLM),
    "one function": RunnableLambda(lambda q: ROBUST.invoke({"context": RETRIEVER.invoke(q), "input": q})),
    "no retrieval": PROMPT | LLM | StrOutputParser(),
    "classic": RetrievalQA(combine_documents_chain=RobustDocumentsChain.from_llm(LLM), retriever=RETRIEVER),
    "final model": create_robust_documents_chain(LLM, PROMPT, final_llm=FakeListChatModel(responses=["x"])),
    "a filter": create_robust_retrieval_chain(compressed(LLMChainFilter.from_llm(LLM)), LLM),
    "ensemble": create_robust_retrieval_chain(EnsembleRetriever(retrievers=[RETRIEVER, Logging(documents=[])]), LLM),
    "agent": create_agent(GullibleAgent(), ORDINARY),
    "tools": ORDINARY,
    "graph": graph_of(retrieve=lambda s: {"context": RETRIEVER.invoke(s["input"])}, answer=create_robust_node(LLM)),
    "inner agent": graph_of(agent=create_agent(GullibleAgent(), ORDINARY)),
    "wrapped tools": StateGraph(MessagesState).add_node(
        "tools", ToolNode([SEARCH], wrap_tool_call=RobustRetrievalMiddleware(LLM).wrap_tool_call)
    ),
}


@pytest.mark.parametrize("name", CLEAN)
def test_programs_that_use_ours_alone_and_ordinary_tools_pass(name: str) -> None:
    assert_defended(CLEAN[name])


def test_the_middleware_covers_an_agents_tools() -> None:
    for more in ([], [SummarizationMiddleware(LLM)], [TodoListMiddleware()]):
        middleware: list[Any] = [*more, RobustRetrievalMiddleware(LLM)]
        assert_defended(create_agent(GullibleAgent(), [SEARCH, *ORDINARY[1:]], middleware=middleware))
        trusting: list[Any] = [*more, RobustRetrievalMiddleware(LLM, trusted=["search"])]
        assert find_undefended(create_agent(GullibleAgent(), [SEARCH], middleware=trusting))


@pytest.mark.parametrize(
    "spec",
    [{"type": "web_search_20250305", "name": "web_search"}, {"type": "file_search"}, {"google_search": {}}],
    ids=["anthropic", "openai", "gemini"],
)
def test_tools_that_the_provider_runs_are_listed(spec: dict[str, Any]) -> None:
    bound = LLM.bind(tools=[spec])
    programs: list[Any] = [
        create_agent(GullibleAgent(), [spec]),
        CONDENSE | bound,
        create_robust_documents_chain(bound, PROMPT),
    ]
    for program in programs:
        assert [f.kind for f in find_undefended(program)] == ["server-tool"]
        assert_defended(program, trusted=[spec])
    assert_defended(
        CONDENSE
        | LLM.bind(tools=[{"type": "function", "function": {"name": "add"}}, {"name": "add", "input_schema": {}}])
    )


def test_middleware_that_retrieves_is_found() -> None:
    @dynamic_prompt
    def with_context(request: Any) -> str:
        return joined(STORE.similarity_search("q"))

    class Injecting(AgentMiddleware[Any, Any]):
        def __init__(self, retriever: Any) -> None:
            super().__init__()
            self.retriever = retriever

        def before_model(self, state: Any, runtime: Any) -> dict[str, Any] | None:
            return {"messages": [("human", joined(self.retriever.invoke("q")))]}

    middlewares: list[Any] = [with_context, Injecting(RETRIEVER)]
    for middleware in middlewares:
        assert find_undefended(middleware), middleware
        assert find_undefended(create_agent(GullibleAgent(), [], middleware=[middleware])), middleware


def test_what_is_not_looked_into_is_named(caplog: pytest.LogCaptureFixture) -> None:
    graph = graph_of(
        retrieve=lambda state: {"context": RETRIEVER.invoke(state["input"])},
        generate=lambda state: {"answer": LLM.invoke(joined(state["context"])).content},
    )
    found = find_undefended([graph, weather])
    assert found == []
    assert len(found.not_looked_into) == 3
    assert "[0].nodes['generate']" in found.not_looked_into[1]
    assert_defended(graph)
    assert "did not look into [" not in caplog.text
    assert "did not look into .nodes['retrieve']" in caplog.text
    assert "audit_isolation()" in caplog.text


def test_the_error_lists_every_place() -> None:
    with pytest.raises(UndefendedError, match="not defended in 2 places") as caught:
        assert_defended([RAW["lcel"], SEARCH])
    assert [f.kind for f in caught.value.findings] == ["raw-prompt", "retrieving-tool"]
    assert [f.path for f in caught.value.findings] == ["[0].steps[2]", "[1]"]


@pytest.mark.parametrize("thing", [None, 3, "x", b"x", object(), Service, [None], ["x"], [ROBUST, 3], [], [[]], STORE])
def test_what_cannot_be_checked_is_refused(thing: object) -> None:
    with pytest.raises(TypeError, match=r"cannot check a|nothing to check in an empty list"):
        assert_defended(thing)


def test_trust_is_by_identity() -> None:
    agent = create_agent(GullibleAgent(), [SEARCH])
    assert_defended(agent, trusted=[SEARCH])
    assert find_undefended(create_agent(GullibleAgent(), [SEARCH.model_copy()]), trusted=[SEARCH])
    for named in ("x", ["search"], 3):
        with pytest.raises(TypeError, match="trusted="):
            find_undefended(agent, trusted=named)  # type: ignore[arg-type]
