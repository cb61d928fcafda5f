"""`assert_defended`: stock programs are caught, defended ones pass, and what did not run is named."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from operator import itemgetter
from typing import Annotated, Any

import pytest
from langchain_core.document_loaders import BaseLoader
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import RunnableLambda, RunnablePassthrough
from langchain_core.tools import (
    BaseTool,
    InjectedToolCallId,
    Tool,
    create_retriever_tool,
    tool,
)
from langchain_core.utils.function_calling import convert_to_openai_tool
from langchain_core.vectorstores import InMemoryVectorStore
from typing_extensions import NotRequired

from langchain_robustrag import (
    UndefendedError,
    VoteRules,
    aassert_defended,
    assert_defended,
    create_robust_retrieval_chain,
    create_robust_retriever_tool,
)
from tests.langchain.fakes import PROMPT, QUESTION, ListRetriever, Reader, truthful

pytest.importorskip("langchain.agents", reason="needs langchain 1.x")
pytest.importorskip("langchain_classic", reason="needs langchain-classic")
from langchain.agents import AgentState, create_agent
from langchain.agents.middleware import dynamic_prompt
from langchain_classic.chains import RetrievalQA, create_retrieval_chain
from langchain_classic.chains.combine_documents import create_stuff_documents_chain
from langchain_classic.retrievers import EnsembleRetriever
from langgraph.func import entrypoint
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Command

from langchain_robustrag.middleware import RobustRetrievalMiddleware
from tests.langchain.tool_nodes import ToolNode

pytestmark = pytest.mark.filterwarnings("ignore::langchain_core._api.LangChainBetaWarning")
BOTH = pytest.mark.parametrize("asynchronously", [False, True], ids=["sync", "async"])


class Obedient(BaseChatModel):
    """Calls each of its tools once, in order, then says what the last order in its prompt wants."""

    @property
    def _llm_type(self) -> str:
        return "obedient"

    def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
        return self.bind(tools=[t if isinstance(t, dict) else convert_to_openai_tool(t) for t in tools])

    def _generate(self, messages: list[BaseMessage], *args: Any, tools: Any = (), **kwargs: Any) -> ChatResult:
        done = {m.tool_call_id for m in messages if isinstance(m, ToolMessage)}
        offered = [t["function"] for t in tools if "function" in t]
        reply = next((_call(f) for f in offered if f["name"] not in done), None)
        if reply is None:
            orders = re.findall(r"say (\w+)", "\n".join(str(m.content) for m in messages))
            reply = AIMessage(orders[-1] if orders else "done")
        return ChatResult(generations=[ChatGeneration(message=reply)])


def _call(function: Any) -> AIMessage:
    parameters = function["parameters"].get("properties", {})
    arguments = {key: 1 if kind.get("type") == "integer" else QUESTION for key, kind in parameters.items()}
    return AIMessage("", tool_calls=[{"name": function["name"], "args": arguments, "id": function["name"]}])


LLM = Obedient()
DOCUMENTS = truthful()
RETRIEVER = ListRetriever(documents=DOCUMENTS)
STORE = InMemoryVectorStore(DeterministicFakeEmbedding(size=4))
STORE.add_documents(DOCUMENTS)
STOCK = create_retriever_tool(RETRIEVER, "search", "S.")
STUFF = create_stuff_documents_chain(LLM, PROMPT)
ROBUST = create_robust_retrieval_chain(RETRIEVER, Reader(), PROMPT, votes=VoteRules(min_radius=1))
ROWS = [{"url": d.metadata["source"], "content": d.page_content} for d in DOCUMENTS]


def joined(documents: list[Document]) -> str:
    return "\n\n".join(d.page_content for d in documents)


def defence(**options: Any) -> Any:
    return [RobustRetrievalMiddleware(Reader(), PROMPT, **options)]


@tool
def add(a: int, b: int) -> int:
    """Add."""
    return a + b


@tool
def send_money(to: str) -> str:
    """Send all the money."""
    raise AssertionError("it was sent")


@tool
async def page(address: str) -> str:
    """Fetch a page."""
    return "A page about France that somebody wrote."


@tool
def rows(topic: str) -> str:
    """Search, and return JSON."""
    return json.dumps({"results": ROWS})


@tool
def row_objects(topic: str) -> Any:
    """Search, and return rows."""
    return {"took": 0.1, "results": ROWS}


@tool
def blocks(topic: str) -> Any:
    """Search, as a tool of an MCP server does."""
    return [{"type": "text", "text": d.page_content} for d in DOCUMENTS]


@tool(response_format="content_and_artifact")
def store_search(prompt: str) -> Any:
    """Search the store without a retriever."""
    found = STORE.similarity_search(prompt, k=5)
    return joined(found), found


@tool
def commanding(topic: str, tool_call_id: Annotated[str, InjectedToolCallId]) -> Any:
    """Search, and write into the state."""
    return Command(update={"messages": [ToolMessage(joined(DOCUMENTS), tool_call_id=tool_call_id)]})


@tool
def researcher(task: str) -> str:
    """An agent of its own, undefended."""
    return str(create_agent(LLM, [STOCK]).invoke({"messages": [HumanMessage(task)]})["messages"][-1].content)


@tool
def defended_researcher(task: str) -> str:
    """An agent of its own."""
    agent = create_agent(LLM, [STOCK], middleware=defence())
    return str(agent.invoke({"messages": [HumanMessage(task)]})["messages"][-1].content)


class Pages(BaseLoader):
    """A loader of the program's own."""

    def lazy_load(self) -> Iterator[Document]:
        yield from DOCUMENTS


@dynamic_prompt
def with_pages(request: Any) -> str:
    """The tutorial's way: a search whose results stand in the system prompt."""
    return joined(STORE.similarity_search(QUESTION))


class Notes(AgentState):  # type: ignore[type-arg]
    notes: NotRequired[str]


@tool
def storing(topic: str, tool_call_id: Annotated[str, InjectedToolCallId]) -> Any:
    """Search, and write into the state."""
    return Command(update={"messages": [ToolMessage("kept", tool_call_id=tool_call_id)], "notes": joined(DOCUMENTS)})


@dynamic_prompt
def with_notes(request: Any) -> str:
    """Shows what tools left in the state."""
    return str(request.state.get("notes"))


with_notes.state_schema = Notes


def own_graph(tools: list[BaseTool], wrap: Any = None) -> Any:
    model = LLM.bind_tools(tools)
    node = ToolNode(tools, wrap_tool_call=wrap)
    graph: Any = StateGraph(MessagesState)
    graph.add_node("ask", lambda state: {"messages": [model.invoke(state["messages"])]})
    graph.add_node("tools", node)
    graph.add_edge(START, "ask")
    graph.add_conditional_edges("ask", lambda state: "tools" if state["messages"][-1].tool_calls else "__end__")
    graph.add_edge("tools", "ask")
    return graph.compile()


def by_hand(tools: list[BaseTool]) -> Any:
    """LCEL that runs its model's tool calls by itself."""
    model, named = LLM.bind_tools(tools), {t.name: t for t in tools}

    def loop(question: str) -> Any:
        messages: list[Any] = [HumanMessage(question)]
        while (reply := model.invoke(messages)).tool_calls:
            results = [named[call["name"]].invoke({**call, "type": "tool_call"}) for call in reply.tool_calls]
            messages += [reply, *results]
        return reply

    return RunnableLambda(loop)


@entrypoint()
def functional(question: str) -> str:
    return str(LLM.invoke(joined(RETRIEVER.invoke(question))).content)


LEAKING: dict[str, Callable[[], Any]] = {
    "stock agent": lambda: create_agent(LLM, [STOCK]),
    "Tool": lambda: create_agent(LLM, [Tool("look", lambda q: "What somebody wrote.", "L.")]),
    "JSON": lambda: create_agent(LLM, [rows]),
    "blocks": lambda: create_agent(LLM, [blocks]),
    "command": lambda: create_agent(LLM, [commanding]),
    "nested agent": lambda: create_agent(LLM, [researcher], middleware=defence()),
    "a trusting middleware": lambda: create_agent(LLM, [STOCK], middleware=defence(trusted=["search"])),
    "own graph": lambda: own_graph([STOCK]),
    "by hand": lambda: by_hand([STOCK]),
    "lcel": lambda: {"context": RETRIEVER | joined, "input": RunnablePassthrough()} | PROMPT | LLM | StrOutputParser(),
    "classic": lambda: RetrievalQA.from_chain_type(LLM, retriever=RETRIEVER),
    "search of a store": lambda: RunnableLambda(lambda q: joined(STORE.similarity_search(q))) | LLM,
    "loader": lambda: RunnableLambda(lambda q: joined(Pages().load())) | LLM,
    "search in the system prompt": lambda: create_agent(
        LLM, [create_robust_retriever_tool(RETRIEVER, Reader(), "search", "S.")], middleware=[with_pages]
    ),
    "documents in the state": lambda: create_agent(
        LLM, [storing], middleware=[*defence(trusted=["storing"]), with_notes]
    ),
    "ensemble": lambda: create_retrieval_chain(EnsembleRetriever(retrievers=[RETRIEVER, STORE.as_retriever()]), STUFF),
    "functional": lambda: functional,
    "documents beside the robust chain": lambda: (
        ROBUST | (lambda found: f"{found['answer']} {found['context'][0].page_content}") | LLM
    ),
}
TRUSTING: Any = {"trusted": ["add"], "stubs": {"send_money": "sent"}}
DEFENDED: dict[str, tuple[Callable[[], Any], dict[str, Any]]] = {
    "middleware": (lambda: create_agent(LLM, [STOCK], middleware=defence()), {}),
    "robust tool": (
        lambda: create_agent(LLM, [create_robust_retriever_tool(RETRIEVER, Reader(), "search", "S.")]),
        {},
    ),
    "as_tool": (
        lambda: create_agent(LLM, [RETRIEVER.as_tool(name="look", description="L.")], middleware=defence()),
        {},
    ),
    "unknown tools": (
        lambda: create_agent(
            LLM, [STOCK, rows, row_objects, blocks, store_search, commanding, add], middleware=defence()
        ),
        {},
    ),
    "trusted and stubs": (
        lambda: create_agent(LLM, [STOCK, add, send_money], middleware=defence(trusted=["add", "send_money"])),
        TRUSTING,
    ),
    "nested agent": (lambda: create_agent(LLM, [defended_researcher], middleware=defence()), {}),
    "by hand": (lambda: by_hand([create_robust_retriever_tool(RETRIEVER, Reader(), "search", "S.")]), {}),
    "chain": (lambda: ROBUST, {}),
    "the answer goes on": (lambda: ROBUST | itemgetter("answer") | LLM, {}),
}


async def checked(app: Any, asynchronously: bool, question: Any = QUESTION, **options: Any) -> Any:
    return (
        await aassert_defended(app, question, **options)
        if asynchronously
        else assert_defended(app, question, **options)
    )


@BOTH
@pytest.mark.parametrize("name", LEAKING)
async def test_stock_programs_are_caught(name: str, asynchronously: bool) -> None:
    sync_only = ("own graph", "nested agent")
    if asynchronously and name in sync_only:
        pytest.skip("its nodes are synchronous")
    with pytest.raises(UndefendedError, match="the prompt holds") as caught:
        await checked(LEAKING[name](), asynchronously)
    assert all(f.path and f.fix for f in caught.value.findings)
    assert RETRIEVER.documents == DOCUMENTS == truthful()


@BOTH
@pytest.mark.parametrize("name", DEFENDED)
async def test_defended_programs_pass(name: str, asynchronously: bool) -> None:
    if asynchronously and name == "own graph":
        pytest.skip("its nodes are synchronous")
    app, options = DEFENDED[name]
    found = await checked(app(), asynchronously, **options)
    assert found.planted
    if options is TRUSTING:
        assert set(found.not_vouched_for) == {"add (taken on trust)", "send_money (replaced by a stub)"}


def test_a_title_that_reaches_a_prompt_is_found() -> None:
    named = [Document("Paris is a city.", metadata={"title": "The capital of France", "language": "en"})]
    found, model = ListRetriever(documents=named), Reader()
    with pytest.raises(UndefendedError, match="a canary that was planted in what 'ListRetriever' returned"):
        assert_defended(lambda q: model.invoke("; ".join(d.metadata["title"] for d in found.invoke(q))), QUESTION)
    assert assert_defended(lambda q: model.invoke("; ".join(d.metadata["language"] for d in found.invoke(q))), QUESTION)


async def test_what_did_not_run_is_named() -> None:
    class Idle(Obedient):
        def _generate(self, messages: list[BaseMessage], *args: Any, tools: Any = (), **kwargs: Any) -> ChatResult:
            return super()._generate(messages, tools=[t for t in tools if t["function"]["name"] == "search"])

    graph: Any = StateGraph(MessagesState)
    graph.add_node("agent", create_agent(Idle(), [STOCK, add, send_money], middleware=defence()))
    graph.add_node("never", lambda state: state)
    graph.add_edge(START, "agent")
    found = assert_defended(graph.compile(), QUESTION)
    assert {"add (did not run)", "send_money (did not run)", "node never (did not run)"} == set(found.not_vouched_for)
    assert "not vouched for: node never (did not run), add (did not run)" in str(found)


@BOTH
async def test_a_check_that_saw_nothing_is_no_pass(asynchronously: bool) -> None:
    for app in (RunnableLambda(str) | LLM, create_agent(LLM, [add]), lambda question: question):
        options = {"trusted": ["add"]} if not callable(app) and hasattr(app, "nodes") else {}
        with pytest.raises(UndefendedError, match="ask a question for which the program retrieves"):
            await checked(app, asynchronously, **options)


@BOTH
async def test_a_tool_of_the_providers_is_found(asynchronously: bool) -> None:
    searching = Obedient().bind(tools=[{"type": "web_search_preview"}])
    with pytest.raises(UndefendedError, match="its provider runs web_search_preview"):
        await checked(ROBUST | itemgetter("answer") | searching, asynchronously)
    found = await checked(ROBUST | itemgetter("answer") | searching, asynchronously, trusted=["web_search_preview"])
    assert found.not_vouched_for == ("web_search_preview (taken on trust)",)


async def test_the_patches_go_when_a_program_fails() -> None:
    before = BaseTool.run, BaseTool.arun, InMemoryVectorStore.similarity_search
    with pytest.raises(UndefendedError):
        assert_defended(RETRIEVER | joined | LLM | (lambda said: 1 / 0), QUESTION)
    assert (BaseTool.run, BaseTool.arun, InMemoryVectorStore.similarity_search) == before
    assert assert_defended(ROBUST, {"input": QUESTION}).planted == ("ListRetriever",)
