"""On clean documents, every way of calling gives what `create_stuff_documents_chain` gives."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder, PromptTemplate
from langchain_core.runnables import RunnableLambda

from langchain_robustrag import create_robust_documents_chain
from tests.langchain.fakes import FINAL, PROMPT, QUESTION, ListRetriever, Reader, truthful

pytest.importorskip("langchain_classic", reason="needs langchain-classic to compare with")
from langchain_classic.chains import create_retrieval_chain
from langchain_classic.chains.combine_documents import create_stuff_documents_chain

INPUT = {"input": QUESTION}


def summed(chunks: list[Any]) -> Any:
    whole = chunks[0]
    for chunk in chunks[1:]:
        whole = whole + chunk
    return whole


async def listed(chunks: Any) -> list[Any]:
    return [chunk async for chunk in chunks]


async def astreamed(chain: Any, given: Any) -> Any:
    return summed(await listed(chain.astream(given)))


async def event(chain: Any, given: Any) -> Any:
    return (await listed(chain.astream_events(given, version="v2")))[-1]["data"]["output"]


STYLES: dict[str, Callable[[Any, Any], Any]] = {
    "ainvoke": lambda chain, given: chain.ainvoke(given),
    "batch": lambda chain, given: chain.batch([given, given])[1],
    "batch_as_completed": lambda chain, given: dict(chain.batch_as_completed([given, given]))[1],
    "stream": lambda chain, given: summed(list(chain.stream(given))),
    "astream": astreamed,
    "transform": lambda chain, given: summed(list(chain.transform(iter([given])))),
    "astream_events": event,
    "piped": lambda chain, given: (RunnableLambda(lambda x: x) | chain | RunnableLambda(lambda x: x)).invoke(given),
}


async def asked(style: str, chain: Any, given: Any) -> Any:
    found = STYLES[style](chain, given)
    return await found if inspect.isawaitable(found) else found


def says_paris(prompt: str) -> str:
    return "Paris"


@pytest.mark.parametrize("style", STYLES)
async def test_inside_a_retrieval_chain(style: str) -> None:
    retriever = ListRetriever(documents=truthful())
    plain = create_retrieval_chain(retriever, create_stuff_documents_chain(Reader(answer=says_paris), PROMPT))
    robust = create_retrieval_chain(
        retriever, create_robust_documents_chain(Reader(answer=says_paris), PROMPT, **FINAL)
    )
    expected, got = await asked(style, plain, INPUT), await asked(style, robust, INPUT)
    assert dict(got) == dict(expected)
    assert isinstance(got["answer"], str)


HISTORY = ChatPromptTemplate.from_messages(
    [("system", "Context: {context}"), MessagesPlaceholder("chat_history", optional=True), ("human", "{question}")]
)
PROMPTS: list[tuple[Any, dict[str, Any], str]] = [
    (PromptTemplate.from_template("{context}\n\nQ: {question}"), {"question": QUESTION}, QUESTION),
    (HISTORY, {"question": QUESTION, "chat_history": [HumanMessage("Hello"), AIMessage("Hi")]}, QUESTION),
    (
        ChatPromptTemplate.from_messages([("system", "{context}"), MessagesPlaceholder("messages")]),
        {"messages": [HumanMessage("Hello"), AIMessage("Hi"), HumanMessage(QUESTION)]},
        QUESTION,
    ),
    (ChatPromptTemplate.from_messages([("system", "Name the capital:\n\n{context}")]), {}, "Name the capital:"),
    (ChatPromptTemplate.from_template("{context} Topic: {topic}"), {"topic": "capitals"}, "capitals"),
]


@pytest.mark.parametrize(("prompt", "given", "question"), PROMPTS)
def test_prompts_of_all_shapes(prompt: Any, given: dict[str, Any], question: str) -> None:
    inputs = {**given, "context": truthful()}
    plain = create_stuff_documents_chain(Reader(answer=says_paris), prompt).invoke(inputs)
    robust = create_robust_documents_chain(Reader(answer=says_paris), prompt, return_robustness=True, **FINAL).invoke(
        inputs
    )
    assert robust["answer"] == plain
    assert robust["robustness"].query == question


def test_a_source_sees_exactly_what_the_plain_chain_would_show_of_it() -> None:
    plain, robust = Reader(), Reader()
    [document] = truthful(1)
    options: dict[str, Any] = {
        "document_prompt": PromptTemplate.from_template("[{source}] {page_content}"),
        "document_variable_name": "docs",
    }
    prompt = ChatPromptTemplate.from_messages([("system", "Docs: {docs}"), ("human", "{input}")])
    create_stuff_documents_chain(plain, prompt, **options).invoke({**INPUT, "docs": [document]})
    create_robust_documents_chain(robust, prompt, **{**FINAL, **options}).invoke({**INPUT, "docs": [document]})
    assert robust.prompts[0] == plain.prompts[0]
