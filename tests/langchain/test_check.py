"""`assert_defended`: stock programs are caught, defended ones pass, and what did not run is named."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from operator import itemgetter
from typing import Annotated, Any

import pytest
from langchain_core.document_loaders import BaseLoader
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import RunnableLambda, RunnablePassthrough
from langchain_core.tools import BaseTool, InjectedToolCallId, Tool, create_retriever_tool, tool
from langchain_core.utils.function_calling import convert_to_openai_tool
from langchain_core.vectorstores import InMemoryVectorStore

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
from langchain.agents import create_agent
from langchain.agents.middleware import dynamic_prompt
from langgraph.func import entrypoint
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Command

from langchain_robustrag.middleware import RobustRetrievalMiddleware

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
ROBUST = create_robust_retrieval_chain(RETRIEVER, Reader(), PROMPT, votes=VoteRules(min_radius=1))


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
def blocks(topic: str) -> Any:
    """Search, as a tool of an MCP server does."""
    return [{"type": "text", "text": d.page_content} for d in DOCUMENTS]


@tool
def commanding(topic: str, tool_call_id: Annotated[str, InjectedToolCallId]) -> Any:
    """Search, and write into the state."""
    return Command(update={"messages": [ToolMessage(joined(DOCUMENTS), tool_call_id=tool_call_id)]})


class Pages(BaseLoader):
    """A loader of the program's own."""

    def lazy_load(self) -> Iterator[Document]:
        yield from DOCUMENTS


@dynamic_prompt
def with_pages(request: Any) -> str:
    """The tutorial's way: a search whose results stand in the system prompt."""
    return joined(STORE.similarity_search(QUESTION))


@entrypoint()
def functional(question: str) -> str:
    return str(LLM.invoke(joined(RETRIEVER.invoke(question))).content)


LEAKING: dict[str, Callable[[], Any]] = {
    "stock agent": lambda: create_agent(LLM, [STOCK]),
    "text of a tool": lambda: create_agent(LLM, [Tool("look", lambda q: "What somebody wrote.", "L.")]),
    "blocks": lambda: create_agent(LLM, [blocks]),
    "command": lambda: create_agent(LLM, [commanding]),
    "a trusting middleware": lambda: create_agent(LLM, [STOCK], middleware=defence(pass_through=["search"])),
    "lcel": lambda: {"context": RETRIEVER | joined, "input": RunnablePassthrough()} | PROMPT | LLM | StrOutputParser(),
    "search of a store": lambda: RunnableLambda(lambda q: joined(STORE.similarity_search(q))) | LLM,
    "loader": lambda: RunnableLambda(lambda q: joined(Pages().load())) | LLM,
    "search in the system prompt": lambda: create_agent(
        LLM, [create_robust_retriever_tool(RETRIEVER, Reader(), "search", "S.")], middleware=[with_pages]
    ),
    "functional": lambda: functional,
    "documents beside the robust chain": lambda: (
        ROBUST | (lambda found: f"{found['answer']} {found['context'][0].page_content}") | LLM
    ),
}
TRUSTING: Any = {"pass_through": ["add"], "stubs": {"send_money": "sent"}}
DEFENDED: dict[str, tuple[Callable[[], Any], dict[str, Any]]] = {
    "robust tool": (lambda: create_agent(LLM, [create_robust_retriever_tool(RETRIEVER, Reader(), "search", "S.")]), {}),
    "unknown tools": (lambda: create_agent(LLM, [STOCK, blocks, commanding, add], middleware=defence()), {}),
    "pass_through and stubs": (
        lambda: create_agent(LLM, [STOCK, add, send_money], middleware=defence(pass_through=["add", "send_money"])),
        TRUSTING,
    ),
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
    with pytest.raises(UndefendedError, match="the prompt holds") as caught:
        await checked(LEAKING[name](), asynchronously)
    assert all(f.path and f.fix for f in caught.value.findings)
    assert RETRIEVER.documents == DOCUMENTS == truthful()


@BOTH
@pytest.mark.parametrize("name", DEFENDED)
async def test_defended_programs_pass(name: str, asynchronously: bool) -> None:
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
async def test_a_tool_of_the_providers_is_found(asynchronously: bool) -> None:
    searching = Obedient().bind(tools=[{"type": "web_search_preview"}])
    with pytest.raises(UndefendedError, match="its provider runs web_search_preview"):
        await checked(ROBUST | itemgetter("answer") | searching, asynchronously)
    chain, passed = ROBUST | itemgetter("answer") | searching, ["web_search_preview"]
    found = await checked(chain, asynchronously, pass_through=passed)
    assert found.not_vouched_for == ("web_search_preview (taken on trust)",)


async def test_the_patches_go_when_a_program_fails() -> None:
    before = BaseTool.run, BaseTool.arun, InMemoryVectorStore.similarity_search
    with pytest.raises(UndefendedError):
        assert_defended(RETRIEVER | joined | LLM | (lambda said: 1 / 0), QUESTION)
    assert (BaseTool.run, BaseTool.arun, InMemoryVectorStore.similarity_search) == before
    assert assert_defended(ROBUST, {"input": QUESTION}).planted == ("ListRetriever",)
