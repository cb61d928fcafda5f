"""The guide's rows hold: each use before and after, and what each mistake says."""

from __future__ import annotations

import re
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder
from langchain_core.tools import create_retriever_tool
from langchain_core.vectorstores import InMemoryVectorStore
from pydantic import BaseModel

import langchain_robustrag
from tests.docs.pages import Page
from tests.langchain.fakes import PROMPT, QUESTION, Reader, planted, read, truthful

pytest.importorskip("langchain.agents", reason="needs langchain 1.x")
pytest.importorskip("langchain_classic", reason="needs langchain-classic")
from langchain.agents import create_agent
from langchain_classic.chains import create_retrieval_chain
from langchain_classic.chains.combine_documents import create_stuff_documents_chain
from langchain_classic.chains.history_aware_retriever import create_history_aware_retriever
from langchain_classic.retrievers import MergerRetriever

GUIDE = Page.read("docs/guide/langchain.md").text
LIES = [planted(source=f"https://evil{number}.example") for number in range(2)]
REPHRASE = ChatPromptTemplate.from_messages([MessagesPlaceholder("chat_history"), ("human", "Alone: {input}")])
ASKED = {"input": QUESTION}
FOLLOW_UP = {"input": "And of France?", "chat_history": [HumanMessage("What is the capital of Spain?"), AIMessage("?")]}


class Answer(BaseModel):
    """A schema."""

    city: str


class Obeying(Reader):
    """Obeys its prompt; with tools it calls the first one, then obeys the result or repeats it."""

    def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
        return self.bind(tools=tools)

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        if "tools" not in kwargs:
            return super()._generate(messages, *args, **kwargs)
        result = next((str(m.content) for m in messages if isinstance(m, ToolMessage)), None)
        call = {"name": "facts", "args": {"query": QUESTION}, "id": "1"}
        reply = AIMessage("", tool_calls=[call]) if result is None else AIMessage(obeyed(result, result))
        return ChatResult(generations=[ChatGeneration(message=reply)])


def obeyed(prompt: str, otherwise: str = "I don't know") -> str:
    if "Alone: " in prompt:
        return QUESTION
    return otherwise if (said := read(prompt)) == "I don't know" else said


def rows(title: str) -> list[list[str]]:
    """The cells of a section's table."""
    section = GUIDE.partition(f"## {title}\n")[2].partition("\n## ")[0]
    return [line.strip("| ").split(" | ") for line in section.splitlines() if line.startswith("| ")][1:]


def code(cell: str) -> str:
    return cell.partition("`")[2].partition("`")[0]


def store(documents: list[Document]) -> InMemoryVectorStore:
    return InMemoryVectorStore.from_documents(documents, DeterministicFakeEmbedding(size=8))


def names() -> dict[str, Any]:
    """What the rows name."""
    llm = Obeying(answer=obeyed)
    silent = Document("Rain falls.", metadata={"source": "https://rain.example"})
    web, handbook, uploads = (
        store(documents).as_retriever(search_kwargs={"k": 8})
        for documents in ([*truthful(5), LIES[0]], truthful(2), [silent, *LIES])
    )
    return {
        **vars(langchain_robustrag),
        "create_agent": create_agent,
        "create_retrieval_chain": create_retrieval_chain,
        "create_retriever_tool": create_retriever_tool,
        "web": web,
        "handbook": handbook,
        "uploads": uploads,
        "both": MergerRetriever(retrievers=[handbook, uploads]),
        "stock": create_stuff_documents_chain(llm, PROMPT),
        "condensed": lambda retriever: create_history_aware_retriever(llm, retriever, REPHRASE),
        "llm": llm,
        "prompt": PROMPT,
        "vector_store": store(truthful(5)),
        "format_docs": lambda documents: "\n\n".join(d.page_content for d in documents),
        "documents": truthful(5),
        "inputs": ASKED,
        "Answer": Answer,
    }


def said(program: Any, use: str) -> str:
    if "agent" in use:
        return str(program.invoke({"messages": [("human", QUESTION)]})["messages"][-1].content)
    return str(program.invoke(FOLLOW_UP if "history" in use else ASKED)["answer"])


def test_each_use_is_taken_over_before_and_not_after() -> None:
    given = names()
    uses = rows("Before and after")
    assert len(uses) == 5
    for use, before, after in uses:
        stock, ours = (eval(code(cell), given) for cell in (before, after))
        assert (said(stock, use), said(ours, use)) == ("London", "Paris"), use


def test_each_mistake_says_what_to_write() -> None:
    mistakes = rows("Mistakes, and what you read")
    assert len(mistakes) == 10
    for written, words in mistakes:
        if words.endswith(" (a warning)"):
            warnings = eval(code(written), names())["robustness"].warnings
            assert any(words.removesuffix(" (a warning)") in warning for warning in warnings), written
            continue
        with pytest.raises((TypeError, ValueError), match=re.escape(words)) as raised:
            eval(code(written), names())
        assert "_robustrag" not in str(raised.value), written


@pytest.mark.parametrize("name", ["k", "search_kwargs", "chain_type", "return_source_documents"])
def test_arguments_of_other_chains_are_told_where_they_belong(name: str) -> None:
    given = names()
    with pytest.raises(TypeError, match=rf"unknown argument '{name}'; (set it on|there is one way|leave it out)"):
        given["create_robust_retrieval_chain"](given["web"], given["llm"], **{name: None})


def test_a_vector_store_is_no_retriever_for_diverse_sources_either() -> None:
    given = names()
    with pytest.raises(ValueError, match=r"a vector store has as_retriever\(\)"):
        given["DiverseRetriever"](given["vector_store"])
