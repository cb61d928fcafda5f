"""The static wiring check: known classes that show documents to a model are found, each with its fix."""

from __future__ import annotations

from operator import itemgetter
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.language_models import FakeListChatModel
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import (
    ConfigurableField,
    RunnableBranch,
    RunnableLambda,
    RunnableParallel,
    RunnablePassthrough,
)
from langchain_core.tools import create_retriever_tool, tool
from langchain_core.vectorstores import InMemoryVectorStore

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
from langchain.agents.middleware import SummarizationMiddleware, TodoListMiddleware
from langchain_classic.chains import RetrievalQA, create_history_aware_retriever, create_retrieval_chain
from langchain_classic.chains.combine_documents import create_stuff_documents_chain
from langgraph.graph import MessagesState, StateGraph

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


RAW: dict[str, Any] = {
    "lcel": {"context": RETRIEVER | joined, "input": RunnablePassthrough()} | PROMPT | LLM | StrOutputParser(),
    "assign": RunnablePassthrough.assign(context=itemgetter("input") | RETRIEVER) | PROMPT | LLM,
    "assign and format": RunnablePassthrough.assign(context=RETRIEVER) | (lambda x: joined(x["context"])) | LLM,
    "stuff": create_retrieval_chain(RETRIEVER, create_stuff_documents_chain(LLM, PROMPT)),
    "stuff alone": create_stuff_documents_chain(LLM, PROMPT),
    "vector store": {"context": STORE.as_retriever() | joined, "input": RunnablePassthrough()} | PROMPT | LLM,
    "fallbacks": (RETRIEVER | joined).with_fallbacks([RunnableLambda(lambda q: "")]) | LLM,
    "branch": RunnableBranch((lambda x: bool(x), RETRIEVER | joined), RunnableLambda(str)) | LLM,
    "retry and config": (RETRIEVER | joined).with_retry().with_config(tags=["t"]) | LLM.with_retry(),
    "configurable": (RETRIEVER | joined) | LLM.configurable_fields(answer=ConfigurableField("said")),
    "alternatives": (RETRIEVER | joined) | LLM.configurable_alternatives(ConfigurableField("which"), other=LLM),
    "map": RETRIEVER | RunnableLambda(lambda d: d.page_content).map() | RunnableLambda("\n".join) | LLM,
    "the context of ours": RAG | ChatPromptTemplate.from_template("Rephrase {answer} with {context}") | LLM,
    "classic": RetrievalQA.from_chain_type(LLM, retriever=RETRIEVER),
    "tool in a chain": RunnableLambda(lambda q: q) | SEARCH | LLM,
    "agent": create_agent(GullibleAgent(), [SEARCH]),
    "tool node": StateGraph(MessagesState).add_node("tools", ToolNode([SEARCH])),
    "inner agent": StateGraph(MessagesState).add_node("agent", create_agent(GullibleAgent(), [SEARCH])),
}


@pytest.mark.parametrize("name", RAW)
def test_known_classes_that_show_documents_to_a_model_are_found(name: str) -> None:
    found = find_undefended(RAW[name])
    assert found, name
    assert all(f.fix and f.problem and str(f) for f in found)


@tool
def remember(text: str) -> str:
    """Remember."""
    STORE.add_documents([Document(text)])
    return "remembered"


CLEAN: dict[str, Any] = {
    "retrieval chain": create_retrieval_chain(RETRIEVER, ROBUST),
    "own": RAG,
    "history": create_retrieval_chain(create_history_aware_retriever(LLM, RETRIEVER, CONDENSE), ROBUST),
    "own with history": create_robust_retrieval_chain(create_history_aware_retriever(LLM, RETRIEVER, CONDENSE), LLM),
    "assign": RunnablePassthrough.assign(context=itemgetter("input") | RETRIEVER) | ROBUST | StrOutputParser(),
    "answer to another model": RAG | ChatPromptTemplate.from_template("Translate {answer}") | LLM,
    "rewritten answer": create_retrieval_chain(RETRIEVER, ROBUST) | (lambda x: f"Translate {x['answer']}") | LLM,
    "picked": RAG.pick("answer") | StrOutputParser() | LLM,
    "got": RAG | itemgetter("answer") | LLM,
    "rewritten query": CONDENSE | LLM | StrOutputParser() | RETRIEVER,
    "wrapped": ROBUST.with_retry().with_config(tags=["t"]),
    "parallel": RunnableParallel(robust=RAG, plain=PROMPT.partial(context="") | LLM),
    "no retrieval": PROMPT | LLM | StrOutputParser(),
    "classic": RetrievalQA(combine_documents_chain=RobustDocumentsChain.from_llm(LLM), retriever=RETRIEVER),
    "final model": create_robust_documents_chain(LLM, PROMPT, final_llm=FakeListChatModel(responses=["x"])),
    "agent": create_agent(GullibleAgent(), [ROBUST_SEARCH, remember]),
    "tools": [ROBUST_SEARCH, remember],
    "graph": StateGraph(MessagesState).add_node("answer", create_robust_node(LLM)),
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
        assert_defended(create_agent(GullibleAgent(), [SEARCH, remember], middleware=middleware))
        trusting: list[Any] = [*more, RobustRetrievalMiddleware(LLM, trusted=["search"])]
        assert find_undefended(create_agent(GullibleAgent(), [SEARCH], middleware=trusting))


def test_the_error_lists_every_place() -> None:
    with pytest.raises(UndefendedError, match="not defended in 2 places") as caught:
        assert_defended([RAW["lcel"], SEARCH])
    assert [f.kind for f in caught.value.findings] == ["raw-prompt", "retrieving-tool"]
    assert [f.path for f in caught.value.findings] == ["[0].steps[2]", "[1]"]


@pytest.mark.parametrize("thing", [None, "x", lambda q: q, [], [ROBUST, 3], STORE])
def test_what_cannot_be_checked_is_refused(thing: object) -> None:
    with pytest.raises(TypeError, match="cannot check a"):
        assert_defended(thing)
