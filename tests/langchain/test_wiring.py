"""The wiring check: every way in which documents reach a prompt is found, and a program that uses ours alone passes."""

from __future__ import annotations

import functools
import sys
from operator import itemgetter
from types import SimpleNamespace
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.language_models import FakeListChatModel
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import (
    Runnable,
    RunnableBranch,
    RunnableLambda,
    RunnableParallel,
    RunnablePassthrough,
    RunnableSequence,
)
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
from langchain.agents.middleware import (
    AgentMiddleware,
    SummarizationMiddleware,
    TodoListMiddleware,
    dynamic_prompt,
)
from langchain_classic.chains import RetrievalQA, create_history_aware_retriever, create_retrieval_chain
from langchain_classic.chains.combine_documents import create_stuff_documents_chain
from langgraph.func import entrypoint, task
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.types import Send

from langchain_robustrag.classic import RobustDocumentsChain
from langchain_robustrag.middleware import RobustRetrievalMiddleware
from tests.langchain.tool_nodes import ToolNode

pytestmark = pytest.mark.filterwarnings("ignore::langchain_core._api.LangChainBetaWarning")
RETRIEVER = ListRetriever(documents=truthful())
STORE = InMemoryVectorStore(DeterministicFakeEmbedding(size=4))
LLM = Reader()
ROBUST = create_robust_documents_chain(LLM, PROMPT, aggregation="keyword", final="always")
SEARCH = create_retriever_tool(RETRIEVER, "search", "Searches.", response_format="content_and_artifact")
ROBUST_SEARCH = create_robust_retriever_tool(
    RETRIEVER, LLM, "search", "Searches.", aggregation="keyword", final="always"
)
TEXTS = ["a page", "another"]


def joined(documents: list[Document]) -> str:
    return "\n\n".join(d.page_content for d in documents)


class Service:
    """An object of the program's own that retrieves."""

    def __init__(self, store: Any) -> None:
        self.store = store

    def lookup(self, query: str) -> str:
        return joined(self.store.similarity_search(query))


class Lazy:
    """A class that finds its retriever in a global when it is called."""

    def lookup(self, query: str) -> str:
        return joined(RETRIEVER.invoke(query))

    def __call__(self, query: str) -> str:
        return self.lookup(query)


SERVICE = Service(STORE)


def helper(query: str) -> str:
    return SERVICE.lookup(query)


SPACE = SimpleNamespace(retriever=RETRIEVER)
HERE = sys.modules[__name__]


class OwnRunnable(Runnable[str, Any]):
    """Retrieves and asks by itself."""

    def invoke(self, input: str, config: Any = None, **kwargs: Any) -> Any:
        return LLM.invoke(joined(RETRIEVER.invoke(input)))


class OwnModel(Reader):
    """A model that looks things up before it answers."""

    def _generate(self, messages: Any, *args: Any, **kwargs: Any) -> Any:
        return super()._generate([*messages, *RETRIEVER.invoke("q")], *args, **kwargs)


class OwnSequence(RunnableSequence[Any, Any]):
    """Does something else than its steps."""

    def invoke(self, input: Any, config: Any = None, **kwargs: Any) -> Any:
        return LLM.invoke(joined(RETRIEVER.invoke(input)))


@functools.lru_cache
def cached() -> BaseRetriever:
    return SPACE.retriever  # type: ignore[no-any-return]


CHAINS: dict[str, Any] = {
    "namespace": RunnableLambda(lambda q: joined(SPACE.retriever.invoke(q))) | LLM,
    "by a word": RunnableLambda(lambda q: getattr(HERE, "RETRIEVER").invoke(q)) | joined | LLM,  # noqa: B009
    "cached": RunnableLambda(lambda q: cached().invoke(q)) | joined | LLM,
    "own runnable": OwnRunnable(),
    "own model": PROMPT | OwnModel(),
    "own sequence": OwnSequence(RunnableLambda(str), RunnableLambda(str)),
    "a tool called": RunnableLambda(lambda q: LLM.invoke(SEARCH.invoke(q))),
    "lcel": {"context": RETRIEVER | joined, "input": RunnablePassthrough()} | PROMPT | LLM | StrOutputParser(),
    "assign": RunnablePassthrough.assign(context=itemgetter("input") | RETRIEVER) | PROMPT | LLM,
    "stuff": create_retrieval_chain(RETRIEVER, create_stuff_documents_chain(LLM, PROMPT)),
    "vector store": {"context": STORE.as_retriever() | joined, "input": RunnablePassthrough()} | PROMPT | LLM,
    "lambda": RunnableLambda(lambda q: {"context": joined(RETRIEVER.invoke(q)), "input": q}) | PROMPT | LLM,
    "closure": (lambda store: RunnableLambda(lambda q: {"context": store.similarity_search(q), "input": q}))(STORE)
    | PROMPT
    | LLM,
    "bound method": RunnableLambda(SERVICE.lookup) | (lambda text: {"context": text, "input": "q"}) | PROMPT | LLM,
    "helper": RunnableLambda(lambda q: {"context": helper(q), "input": q}) | PROMPT | LLM,
    "callable object": RunnableLambda(Lazy().lookup) | (lambda text: {"context": text, "input": "q"}) | PROMPT | LLM,
    "mentions": RunnableLambda(functools.partial(lambda store, q: store.search(q, "mmr"), STORE)) | LLM,
    "default": RunnableLambda(lambda q, r=RETRIEVER: r.invoke(q)) | joined | LLM,
    "one function": RunnableLambda(lambda q: LLM.invoke(joined(RETRIEVER.invoke(q)))),
    "fallbacks": (RETRIEVER | joined).with_fallbacks([RunnableLambda(lambda q: "")]) | LLM,
    "branch": RunnableBranch((lambda x: bool(x), RETRIEVER | joined), RunnableLambda(str)) | LLM,
    "retry and config": (RETRIEVER | joined).with_retry().with_config(tags=["t"]) | LLM.with_retry(),
    "map": RETRIEVER | RunnableLambda(lambda d: d.page_content).map() | RunnableLambda("\n".join) | LLM,
    "partial prompt": ChatPromptTemplate.from_template("{context} {input}").partial(
        context=lambda: joined(RETRIEVER.invoke("q"))
    )
    | LLM,
    "beside ours": RunnablePassthrough.assign(context=RETRIEVER)
    | {"answer": ROBUST, "context": itemgetter("context")}
    | ChatPromptTemplate.from_template("Check {answer} against {context}")
    | LLM,
    "the report": create_robust_retrieval_chain(RETRIEVER, LLM, aggregation="keyword", final="always")
    | ChatPromptTemplate.from_template("Rephrase {answer} with {context}")
    | LLM,
    "the whole report": create_robust_retrieval_chain(RETRIEVER, LLM, aggregation="keyword", final="always")
    | (lambda x: f"Rephrase {x}")
    | LLM,
    "before ours": {"input": RunnablePassthrough(), "notes": RETRIEVER}
    | create_robust_retrieval_chain(
        RETRIEVER,
        LLM,
        ChatPromptTemplate.from_template("{context} {notes} {input}"),
        aggregation="keyword",
        final="always",
    ),
    "another input": RunnablePassthrough.assign(context=RETRIEVER, notes=RETRIEVER)
    | create_robust_documents_chain(
        LLM, ChatPromptTemplate.from_template("{context} {notes} {input}"), aggregation="keyword", final="always"
    ),
    "classic": RetrievalQA.from_chain_type(LLM, retriever=RETRIEVER),
    "tool in a chain": RunnableLambda(lambda q: q) | SEARCH | LLM,
    "class made inside": RunnableLambda(lambda q: Service(InMemoryVectorStore(q)).lookup(q)) | LLM,
}


@pytest.mark.parametrize("name", CHAINS)
def test_chains_that_show_documents_to_a_model_are_found(name: str) -> None:
    found = find_undefended(CHAINS[name])
    assert found, name
    assert all(f.fix and f.problem and str(f) for f in found)


CONDENSE = ChatPromptTemplate.from_messages([("placeholder", "{chat_history}"), ("human", "{input}")])
AWARE = create_history_aware_retriever(LLM, RETRIEVER, CONDENSE)
CLEAN: dict[str, Any] = {
    "retrieval chain": create_retrieval_chain(RETRIEVER, ROBUST),
    "own retrieval chain": create_robust_retrieval_chain(
        RETRIEVER, LLM, group_by="source", aggregation="keyword", final="always"
    ),
    "supporting only": create_robust_retrieval_chain(
        STORE.as_retriever(), LLM, supporting_only=True, aggregation="keyword", final="always"
    ),
    "history": create_retrieval_chain(AWARE, ROBUST),
    "own with history": create_robust_retrieval_chain(AWARE, LLM, aggregation="keyword", final="always"),
    "assign": RunnablePassthrough.assign(context=itemgetter("input") | RETRIEVER) | ROBUST | StrOutputParser(),
    "lambda before": RunnableLambda(lambda q: {"context": RETRIEVER.invoke(q), "input": q}) | ROBUST,
    "answer to another model": create_retrieval_chain(RETRIEVER, ROBUST)
    | ChatPromptTemplate.from_template("Translate {answer}")
    | LLM,
    "rewritten answer": create_retrieval_chain(RETRIEVER, ROBUST) | (lambda x: f"Translate {x['answer']}") | LLM,
    "own, answer to another model": create_robust_retrieval_chain(RETRIEVER, LLM, aggregation="keyword", final="always")
    | ChatPromptTemplate.from_template("Translate {answer}")
    | LLM,
    "own, picked": create_robust_retrieval_chain(RETRIEVER, LLM, aggregation="keyword", final="always").pick("answer")
    | StrOutputParser()
    | LLM,
    "own, got": create_robust_retrieval_chain(RETRIEVER, LLM, aggregation="keyword", final="always")
    | itemgetter("answer")
    | LLM,
    "own, assigned": create_robust_retrieval_chain(RETRIEVER, LLM, aggregation="keyword", final="always")
    | RunnablePassthrough.assign(short=(lambda x: {"a": x["answer"]}) | ChatPromptTemplate.from_template("{a}") | LLM),
    "rewritten query": CONDENSE | LLM | StrOutputParser() | RETRIEVER,
    "wrapped": ROBUST.with_retry().with_config(tags=["t"]),
    "parallel": RunnableParallel(
        robust=create_retrieval_chain(RETRIEVER, ROBUST), plain=PROMPT.partial(context="") | LLM
    ),
    "one function": RunnableLambda(lambda q: ROBUST.invoke({"context": RETRIEVER.invoke(q), "input": q})),
    "no retrieval": PROMPT | LLM | StrOutputParser(),
    "classic": RetrievalQA(combine_documents_chain=RobustDocumentsChain.from_llm(LLM), retriever=RETRIEVER),
    "decoding options": create_robust_documents_chain(LLM, aggregation="voting", choices=["a", "b"]),
    "final model": create_robust_documents_chain(
        LLM, PROMPT, final_llm=FakeListChatModel(responses=["x"]), aggregation="keyword", final="always"
    ),
    "retriever": RETRIEVER,
}


@pytest.mark.parametrize("name", CLEAN)
def test_chains_that_use_ours_alone_pass(name: str) -> None:
    assert_defended(CLEAN[name])


@tool
def text_search(query: str) -> str:
    """Search."""
    return "\n\n".join(TEXTS)


@tool
def store_search(query: str) -> str:
    """Search."""
    return joined(STORE.similarity_search(query))


@tool
def indirect(query: str) -> str:
    """Search."""
    return helper(query)


@tool
def fetch(url: str) -> str:
    """Fetch."""
    import urllib.request

    return str(urllib.request.urlopen(url).read())


@tool
def reads_files(path: str) -> str:
    """Read."""
    return open(path).read()


@tool
def add(a: int, b: int) -> int:
    """Add."""
    return a + b


@tool
def greet(name: str) -> str:
    """Greet."""
    return f"Hello {name.title()}, 2 + 2 = {2 + 2}"


@tool
def remember(text: str) -> str:
    """Remember."""
    STORE.add_documents([Document(text)])
    return "remembered"


@tool
def answers(query: str) -> str:
    """Answer robustly."""
    return str(ROBUST.invoke({"context": RETRIEVER.invoke(query), "input": query}))


RAG = create_robust_retrieval_chain(RETRIEVER, LLM, aggregation="keyword", final="always")


@tool
def rag_answer(query: str) -> str:
    """Answer robustly."""
    return str(RAG.invoke({"input": query})["answer"])


@tool
def rag_whole(input: str) -> dict[str, Any]:
    """Give away the whole result."""
    return RAG.invoke({"input": input})


@tool
def rag_text(input: str) -> str:
    """Give away the whole result as text."""
    result = RAG.invoke({"input": input})
    return str(result)


@tool
def rag_matched(query: str) -> str:
    """Answer robustly."""
    match RAG.invoke({"input": query}):
        case {"answer": found}:
            return str(found)
    return ""


@tool
def rag_context(query: str) -> str:
    """Give away what was retrieved."""
    return joined(RAG.invoke({"input": query})["context"])


@tool
def count(query: str) -> int:
    """Count."""
    return len(STORE.similarity_search(query))


class ToolClass(BaseTool):
    name: str = "search"
    description: str = "Searches."
    service: Any = None

    def _run(self, query: str) -> str:
        return str(self.service.lookup(query))


RAW_TOOLS: dict[str, Any] = {
    "stock": SEARCH,
    "content": create_retriever_tool(RETRIEVER, "search", "S."),
    "text": text_search,
    "store": store_search,
    "helper": indirect,
    "fetch": fetch,
    "file": reads_files,
    "context of ours": rag_context,
    "dict of ours": rag_whole,
    "dict of ours as text": rag_text,
    "ours as a tool": RAG.as_tool(name="search", description="S.", arg_types={"input": str}),
    "class": ToolClass(service=SERVICE),
    "callable object": StructuredTool.from_function(Lazy().__call__, name="search", description="S."),
    "of a chain": (RETRIEVER | joined).as_tool(name="search", description="S.", arg_types={"query": str}),
}
FINE_TOOLS: list[Any] = [ROBUST_SEARCH, add, greet, remember, answers, rag_answer, rag_matched, count]


@pytest.mark.parametrize("name", RAW_TOOLS)
def test_tools_whose_results_an_agent_reads_raw_are_found(name: str) -> None:
    tool = RAW_TOOLS[name]
    [finding] = find_undefended(create_agent(GullibleAgent(), [tool, *FINE_TOOLS[1:]]))
    assert finding.kind in ("retrieving-tool", "unknown-tool")
    assert tool.name in finding.problem
    assert [f.kind for f in find_undefended([tool])] == [finding.kind]


def test_agents_whose_tools_are_ours_or_hold_nothing_pass() -> None:
    assert_defended(create_agent(GullibleAgent(), FINE_TOOLS))
    assert_defended(FINE_TOOLS)


@pytest.mark.parametrize("name", RAW_TOOLS)
def test_the_middleware_covers_the_tools_that_it_names(name: str) -> None:
    tool = RAW_TOOLS[name]
    for options in ({"tools": [tool]}, {"strict": True}, {"trusted": [tool]}):
        middleware: Any = RobustRetrievalMiddleware(LLM, **options)  # type: ignore[arg-type]
        assert_defended(create_agent(GullibleAgent(), [tool], middleware=[middleware]))


def test_middleware_of_langchain_passes() -> None:
    tools: list[Any] = [SummarizationMiddleware(LLM), TodoListMiddleware()]
    for middleware in tools:
        assert_defended(create_agent(GullibleAgent(), [ROBUST_SEARCH], middleware=[middleware]))
        ours: Any = RobustRetrievalMiddleware(LLM)
        assert_defended(create_agent(GullibleAgent(), [SEARCH], middleware=[middleware, ours]))


def test_what_passes_the_middleware_is_listed_before_and_after_it_passed() -> None:
    middleware: Any = RobustRetrievalMiddleware(LLM)
    agent = create_agent(GullibleAgent(), [text_search, SEARCH, greet], middleware=[middleware])
    [finding] = find_undefended(agent)
    assert (finding.kind, finding.component) == ("unknown-tool", "StructuredTool")
    assert "'text_search'" in finding.problem
    middleware.results.passed.add("greet")
    assert len(find_undefended(agent)) == 2


@pytest.mark.parametrize(
    "spec",
    [
        {"type": "web_search_20250305", "name": "web_search", "max_uses": 3},
        {"type": "file_search", "vector_store_ids": ["v"]},
        {"google_search": {}},
    ],
    ids=["anthropic", "openai", "gemini"],
)
def test_tools_that_the_provider_runs_are_listed(spec: dict[str, Any]) -> None:
    middleware: Any = RobustRetrievalMiddleware(LLM, strict=True)
    bound = LLM.bind(tools=[spec])
    programs: list[Any] = [
        create_agent(GullibleAgent(), [spec]),
        create_agent(GullibleAgent(), [ROBUST_SEARCH, spec], middleware=[middleware]),
        CONDENSE | bound,
        create_robust_documents_chain(bound, PROMPT, aggregation="keyword", final="always"),
    ]
    for program in programs:
        assert [f.kind for f in find_undefended(program)] == ["server-tool"]
        assert_defended(program, trusted=[spec])


def test_tools_that_the_program_runs_are_no_server_tools() -> None:
    own = [{"type": "function", "function": {"name": "add"}}, {"name": "add", "input_schema": {"type": "object"}}]
    assert_defended(CONDENSE | LLM.bind(tools=own))


def test_trust_is_by_identity() -> None:
    agent = create_agent(GullibleAgent(), [text_search])
    assert_defended(agent, trusted=[text_search])
    assert_defended(agent, trusted=[text_search.func])  # type: ignore[attr-defined]
    copy = StructuredTool.from_function(text_search.func, name="text_search")  # type: ignore[attr-defined]
    assert find_undefended(create_agent(GullibleAgent(), [copy]), trusted=[text_search])
    with pytest.raises(TypeError, match="a name proves nothing"):
        find_undefended(agent, trusted=["text_search"])


def test_middleware_that_retrieves_is_found() -> None:
    @dynamic_prompt
    def with_context(request: Any) -> str:
        return joined(STORE.similarity_search("q"))

    class Injecting(AgentMiddleware[Any, Any]):
        def __init__(self, retriever: BaseRetriever) -> None:
            super().__init__()
            self.retriever = retriever

        def before_model(self, state: Any, runtime: Any) -> dict[str, Any] | None:
            return {"messages": [("human", joined(self.retriever.invoke("q")))]}

    middlewares: list[Any] = [with_context, Injecting(RETRIEVER)]
    for middleware in middlewares:
        assert find_undefended(create_agent(GullibleAgent(), [], middleware=[middleware])), middleware


class State(TypedDict, total=False):
    input: str
    context: list[Document]
    draft: str
    answer: str
    robustness: dict[str, Any]


def graph_of(**nodes: Any) -> Any:
    builder = StateGraph(State)
    previous = START
    for name, node in nodes.items():
        builder.add_node(name, node)
        builder.add_edge(previous, name)
        previous = name
    builder.add_edge(previous, END)
    return builder.compile()


def retrieve(state: State) -> dict[str, Any]:
    return {"context": RETRIEVER.invoke(state["input"])}


def generate(state: State) -> dict[str, Any]:
    return {"answer": LLM.invoke(joined(state["context"])).content}


def rewrite(state: State) -> dict[str, Any]:
    return {"input": LLM.invoke(f"Rewrite {state['input']}").content}


def summarise(state: State) -> dict[str, Any]:
    return {"draft": joined(state.get("context", []))}


def finish(state: State) -> dict[str, Any]:
    return {"answer": LLM.invoke(state["draft"]).content}


def polish(state: State) -> dict[str, Any]:
    return {"answer": LLM.invoke(f"Polish {state['answer']}").content}


def robustly(state: State) -> dict[str, Any]:
    documents = RETRIEVER.invoke(state["input"])
    return {"context": documents, "answer": ROBUST.invoke({"context": documents, "input": state["input"]})}


def chain_on_state(state: State) -> dict[str, Any]:
    return {"answer": (PROMPT | LLM).invoke(dict(state)).content}


def rag_node(state: State) -> dict[str, Any]:
    return RAG.invoke({"input": state["input"]})


def rag_rewritten(state: State) -> dict[str, Any]:
    return {"answer": LLM.invoke(f"Rewrite {RAG.invoke({'input': state['input']})}").content}


def whole_state(state: State) -> dict[str, Any]:
    return {"answer": LLM.invoke(f"Polish {state}").content}


def report_of_ours(state: State) -> dict[str, Any]:
    return {"answer": LLM.invoke(f"Polish {state['robustness']}").content}


def report_elsewhere(state: State) -> dict[str, Any]:
    return {"answer": LLM.invoke(f"Polish {state['draft']}").content}


def answer_alone(state: State) -> dict[str, Any]:
    return {"answer": LLM.invoke("Say hello.").content}


CHAIN_ON_STATE = PROMPT | LLM


def invoke_chain(state: State) -> dict[str, Any]:
    return {"answer": CHAIN_ON_STATE.invoke(state).content}  # type: ignore[arg-type]


def graded(state: State) -> str:
    return str(LLM.invoke(joined(state["context"])).content)


def sent_to(node: Any) -> Any:
    """Each document is sent to a node by itself."""
    builder = StateGraph(State)
    builder.add_node("rewrite", rewrite)
    builder.add_node("each", node)
    builder.add_edge(START, "rewrite")
    builder.add_conditional_edges(
        "rewrite", lambda state: [Send("each", {"context": [d], "input": ""}) for d in RETRIEVER.invoke("q")], ["each"]
    )
    return builder.compile()


def conditional() -> Any:
    builder = StateGraph(State)
    builder.add_node("retrieve", retrieve)
    builder.add_node("generate", create_robust_node(LLM, aggregation="keyword", final="always"))
    builder.add_edge(START, "retrieve")
    builder.add_conditional_edges("retrieve", graded, {"yes": "generate", "no": END})
    builder.add_edge("generate", END)
    return builder


@task
def looked_up(query: str) -> str:
    return joined(RETRIEVER.invoke(query))


@entrypoint()
def functional(query: str) -> str:
    return str(LLM.invoke(looked_up(query).result()).content)


RAW_GRAPHS: dict[str, Any] = {
    "two nodes": graph_of(retrieve=retrieve, generate=generate),
    "one node": graph_of(both=lambda state: {"answer": LLM.invoke(joined(RETRIEVER.invoke(state["input"])))}),
    "through another key": graph_of(retrieve=retrieve, summarise=summarise, finish=finish),
    "a chain on the state": graph_of(retrieve=retrieve, generate=invoke_chain),
    "a chain made inside": graph_of(retrieve=retrieve, generate=chain_on_state),
    "beside ours": graph_of(robustly=robustly, generate=generate),
    "grader": conditional().compile(),
    "not compiled": conditional(),
    "sent": sent_to(generate),
    "inside": graph_of(inner=graph_of(retrieve=retrieve, generate=generate)),
    "across": graph_of(retrieve=retrieve, inner=graph_of(generate=generate)),
    "functional": functional,
    "the whole result of ours": graph_of(rewrite=rag_rewritten),
    "the context of ours": graph_of(rag=rag_node, generate=generate),
    "the whole state": graph_of(
        retrieve=retrieve, generate=create_robust_node(LLM, aggregation="keyword", final="always"), polish=whole_state
    ),
    "the report of ours": graph_of(
        retrieve=retrieve,
        generate=create_robust_node(LLM, aggregation="keyword", final="always"),
        polish=report_of_ours,
    ),
    "the report elsewhere": graph_of(
        retrieve=retrieve,
        generate=create_robust_node(LLM, robustness_key="draft", aggregation="keyword", final="always"),
        polish=report_elsewhere,
    ),
    "stock tools": StateGraph(MessagesState).add_node("tools", ToolNode([SEARCH])),
}
CLEAN_GRAPHS: dict[str, Any] = {
    "robust node": graph_of(
        rewrite=rewrite, retrieve=retrieve, generate=create_robust_node(LLM, aggregation="keyword", final="always")
    ),
    "sent to ours": sent_to(create_robust_node(LLM, aggregation="keyword", final="always")),
    "ours in a function": graph_of(rewrite=rewrite, robustly=robustly, polish=polish),
    "a chain of ours in a function": graph_of(rag=rag_node, polish=polish, rewrite=rewrite),
    "polished": graph_of(
        retrieve=retrieve, generate=create_robust_node(LLM, aggregation="keyword", final="always"), polish=polish
    ),
    "a node that reads nothing": graph_of(
        retrieve=retrieve, generate=create_robust_node(LLM, aggregation="keyword", final="always"), greet=answer_alone
    ),
    "no report": graph_of(
        retrieve=retrieve,
        generate=create_robust_node(LLM, robustness_key=None, aggregation="keyword", final="always"),
        polish=report_elsewhere,
    ),
    "agent inside": graph_of(agent=create_agent(GullibleAgent(), FINE_TOOLS)),
    "robust tools": StateGraph(MessagesState).add_node("tools", ToolNode([ROBUST_SEARCH])),
    "wrapped tools": StateGraph(MessagesState).add_node(
        "tools", ToolNode([SEARCH], wrap_tool_call=RobustRetrievalMiddleware(LLM).wrap_tool_call)
    ),
}


@pytest.mark.parametrize("name", RAW_GRAPHS)
def test_graphs_that_show_documents_to_a_model_are_found(name: str) -> None:
    assert find_undefended(RAW_GRAPHS[name])


@pytest.mark.parametrize("name", CLEAN_GRAPHS)
def test_graphs_that_use_ours_alone_pass(name: str) -> None:
    assert_defended(CLEAN_GRAPHS[name])


def test_retrievers_that_let_a_model_read_documents_are_found() -> None:
    from langchain_classic.retrievers import ContextualCompressionRetriever, MultiQueryRetriever
    from langchain_classic.retrievers.document_compressors import LLMListwiseRerank

    class Choosing(ListRetriever):
        model: Any = None

    compressor = LLMListwiseRerank.model_construct(reranker=LLM)
    joint = ContextualCompressionRetriever.model_construct(base_compressor=compressor, base_retriever=RETRIEVER)
    for retriever in (joint, Choosing(documents=[], model=LLM)):
        for program in (
            create_retrieval_chain(retriever, ROBUST),
            create_robust_retrieval_chain(retriever, LLM, aggregation="keyword", final="always"),
        ):
            assert [f.kind for f in find_undefended(program)] == ["reading-retriever"]
    queries = MultiQueryRetriever.from_llm(RETRIEVER, LLM)
    assert_defended(create_retrieval_chain(queries, ROBUST))


ASKED = ChatPromptTemplate.from_template("Sum up: {text}") | LLM | StrOutputParser()
STEPS: dict[str, Any] = {
    "a chain": ASKED,
    "bound": LLM.bind(stop=["x"]),
    "with retries": LLM.with_retry(),
    "a service": SimpleNamespace(chain=ASKED),
    "a retriever and a chain": RETRIEVER | joined | ASKED,
}


class Summing(ListRetriever):
    """A retriever that sums up what it found."""

    step: Any = None


class Rewriting(BaseRetriever):
    """A retriever that sums up with a chain of its module."""

    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        return [Document(ASKED.invoke({"text": joined(RETRIEVER.invoke(query))}))]


@pytest.mark.parametrize("name", [*STEPS, "of the module"])
def test_steps_with_a_model_in_a_retriever_are_found(name: str) -> None:
    retriever = Summing(documents=[], step=STEPS[name]) if name in STEPS else Rewriting()
    for program in (
        create_retrieval_chain(retriever, ROBUST),
        create_robust_retrieval_chain(retriever, LLM, aggregation="keyword", final="always"),
    ):
        assert [f.kind for f in find_undefended(program)] == ["reading-retriever"]


def test_rerankers_that_read_all_documents_are_found_and_those_that_read_one_pass() -> None:
    from langchain_classic.retrievers import ContextualCompressionRetriever, EnsembleRetriever
    from langchain_classic.retrievers.document_compressors import (
        DocumentCompressorPipeline,
        LLMChainExtractor,
        LLMChainFilter,
        LLMListwiseRerank,
    )

    class Choosing(Reader):
        def with_structured_output(self, schema: Any, **kwargs: Any) -> Any:
            return self | RunnableLambda(lambda message: schema(ranked_document_ids=[0]))

    def compressed(compressor: Any) -> Any:
        return create_robust_retrieval_chain(
            ContextualCompressionRetriever(base_compressor=compressor, base_retriever=RETRIEVER),
            LLM,
            aggregation="keyword",
            final="always",
        )

    together = LLMListwiseRerank.from_llm(Choosing())
    alone = [LLMChainExtractor.from_llm(LLM), LLMChainFilter.from_llm(LLM)]
    for compressor in (together, DocumentCompressorPipeline(transformers=[*alone, together])):
        assert [f.kind for f in find_undefended(compressed(compressor))] == ["reading-retriever"]
    for compressor in (*alone, DocumentCompressorPipeline(transformers=alone)):
        assert_defended(compressed(compressor))
    rewritten = CONDENSE | LLM | StrOutputParser() | RETRIEVER
    assert_defended(
        create_robust_retrieval_chain(
            EnsembleRetriever(retrievers=[RETRIEVER, rewritten]), LLM, aggregation="keyword", final="always"
        )
    )


def test_the_error_lists_every_place() -> None:
    with pytest.raises(UndefendedError, match="not defended in 2 places") as caught:
        assert_defended([CHAINS["lcel"], RAW_TOOLS["stock"]])
    assert [f.kind for f in caught.value.findings] == ["raw-prompt", "retrieving-tool"]


def test_what_cannot_be_checked_is_refused() -> None:
    with pytest.raises(TypeError, match="cannot check a int"):
        find_undefended(3)


def test_nothing_is_not_defended() -> None:
    with pytest.raises(TypeError, match="nothing to check in an empty list"):
        assert_defended([])
