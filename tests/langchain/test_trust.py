"""Trust first in LangChain: a trusted retriever decides, and nothing that another one finds changes its answer."""

from __future__ import annotations

import asyncio
import pickle
import re
from collections.abc import Iterator
from typing import Any

import pytest
from langchain_classic.chains import create_retrieval_chain
from langchain_classic.chains.combine_documents import create_stuff_documents_chain
from langchain_core.documents import Document
from langchain_core.language_models import BaseChatModel
from langchain_core.load import dumpd
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableLambda
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.graph import StateGraph
from pydantic import Field
from typing_extensions import TypedDict

from langchain_robustrag import (
    IsolationAudit,
    assert_defended,
    create_robust_documents_chain,
    create_robust_node,
    create_robust_retrieval_chain,
    create_robust_retriever_tool,
    history_message,
)
from robustrag_integrations import TrustedError
from robustrag_integrations._util.errors import UndefendedError
from robustrag_integrations.text.prompts import SILENCE_REQUEST

QUESTION = "What is the notice period?"
PROMPT = ChatPromptTemplate.from_messages([("system", "Answer from the context.\n{context}"), ("human", "{input}")])
HANDBOOK = [
    Document("The notice period is 4 weeks.", metadata={"source": "handbook/leave.md"}),
    Document("A badge costs 3 euros.", metadata={"source": "handbook/badges.md"}),
]
BADGES = HANDBOOK[1:]


def uploads(count: int, text: str = "The notice period is 1 day.") -> list[Document]:
    return [Document(text, metadata={"source": f"uploads/{i}.md"}) for i in range(count)]


class Reader(BaseChatModel):
    """Says what stands in its prompt, word by word."""

    prompts: list[list[BaseMessage]] = Field(default_factory=list)
    reply: str | None = None

    @property
    def _llm_type(self) -> str:
        return "reader"

    def _said(self, messages: list[BaseMessage]) -> str:
        self.prompts.append(messages)
        if self.reply is not None and "uploads" not in str(messages) and "1 day" not in str(messages):
            return self.reply
        found = re.search(r"The notice period is ([\w ]+)\.", str([m.content for m in messages]))
        return f"It is {found[1]}." if found else "I don't know"

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=AIMessage(self._said(messages)))])

    def _stream(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> Iterator[ChatGenerationChunk]:
        for word in re.findall(r"\S+\s*", self._said(messages)):
            yield ChatGenerationChunk(message=AIMessageChunk(word))


class Finds(BaseRetriever):
    documents: list[Any]
    asked: list[str] = Field(default_factory=list)

    def _get_relevant_documents(self, query: str, **kwargs: Any) -> list[Document]:
        self.asked.append(query)
        return list(self.documents)


class Fails(BaseRetriever):
    def _get_relevant_documents(self, query: str, **kwargs: Any) -> list[Document]:
        raise ConnectionError("the store is down")


def chain(others: Any, trusted: Any = HANDBOOK, llm: Any = None, **options: Any) -> Any:
    found = others if isinstance(others, BaseRetriever) else Finds(documents=others)
    shelf = trusted if isinstance(trusted, BaseRetriever) else Finds(documents=trusted)
    return create_robust_retrieval_chain(found, llm or Reader(), PROMPT, trusted_retriever=shelf, **options)


def every_way(made: Any) -> Iterator[dict[str, Any]]:
    question = {"input": QUESTION}
    yield made.invoke(question)
    yield asyncio.run(made.ainvoke(question))
    pieces = made.stream(question)
    whole = next(pieces)
    for piece in pieces:
        whole = whole + piece
    yield whole

    async def streamed() -> dict[str, Any]:
        found: Any = None
        async for piece in made.astream(question):
            found = piece if found is None else found + piece
        return found  # type: ignore[no-any-return]

    yield asyncio.run(streamed())


def test_the_prompt_is_the_stock_one_behind_one_sentence() -> None:
    ours, stock = Reader(prompts=[]), Reader(prompts=[])
    document_prompt = ChatPromptTemplate.from_template("{source}: {page_content}")
    options: dict[str, Any] = {"document_prompt": document_prompt, "document_separator": "\n--\n"}
    chain(uploads(3), llm=ours, **options).invoke({"input": QUESTION})
    stuff = create_stuff_documents_chain(stock, PROMPT, **options)
    create_retrieval_chain(Finds(documents=HANDBOOK), stuff).invoke({"input": QUESTION})
    [[system, human]], [[stock_system, stock_human]] = ours.prompts, stock.prompts
    assert (system.content, human) == (f"{SILENCE_REQUEST}\n\n{stock_system.content}", stock_human)
    bare = Reader(prompts=[])
    chain(uploads(3), llm=bare, silence_request="none", **options).invoke({"input": QUESTION})
    assert bare.prompts == stock.prompts


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize(
    "reply",
    [
        AIMessage("I don't know", tool_calls=[{"name": "search", "args": {}, "id": "1"}]),
        AIMessage("I don't know", additional_kwargs={"tool_calls": [{"id": "1"}]}),
        AIMessage([{"type": "text", "text": "I don't know"}, {"type": "tool_use", "name": "search", "input": {}}]),
        AIMessage("I don't know", response_metadata={"stop_reason": "pause_turn"}),
        AIMessage("I don't know", response_metadata={"finish_reason": "SAFETY"}),
        AIMessage("I don't know", additional_kwargs={"refusal": "No."}),
        AIMessage([{"type": "thinking", "thinking": "I don't know"}]),
    ],
)
def test_the_phrase_of_a_reply_that_is_no_whole_answer_lets_nobody_in(reply: AIMessage, streamed: bool) -> None:
    class Says(Reader):
        def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
            return ChatResult(generations=[ChatGeneration(message=reply)])

        def _stream(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> Iterator[ChatGenerationChunk]:
            yield ChatGenerationChunk(message=AIMessageChunk(**reply.model_dump(exclude={"type"})))
            ended = reply.response_metadata or {"finish_reason": "stop"}
            yield ChatGenerationChunk(message=AIMessageChunk("", response_metadata=ended))

    made = chain(found := Finds(documents=uploads(5)), BADGES, llm=Says())
    with pytest.raises(TrustedError):
        list(made.stream({"input": QUESTION})) if streamed else made.invoke({"input": QUESTION})
    assert found.asked == []


@pytest.mark.parametrize("kind", [list, tuple, iter])
def test_a_trusted_retriever_may_give_any_list_of_documents(kind: Any) -> None:
    found = RunnableLambda(lambda question: kind(HANDBOOK))
    options: dict[str, Any] = {"trusted_retriever": found, "when_empty": "ask_others"}
    result = create_robust_retrieval_chain(Finds(documents=uploads(3)), Reader(), PROMPT, **options)
    for answer in every_way(result):
        assert (answer["answer"], answer["context"]) == ("It is 4 weeks.", HANDBOOK)
    tool = create_robust_retriever_tool(Finds(documents=[]), Reader(), "s", "S.", prompt=PROMPT, **options)
    call = {"name": "s", "args": {"query": QUESTION}, "id": "1", "type": "tool_call"}
    assert tool.invoke(call).artifact["documents"] == HANDBOOK


def test_tokens_of_a_trusted_answer_are_shown_as_they_come() -> None:
    pieces = [
        piece["answer"] for piece in chain(uploads(2), word_gate=False).stream({"input": QUESTION}) if "answer" in piece
    ]
    assert pieces == ["It", " is", " 4", " weeks."]

    async def told() -> list[str]:
        events = chain(uploads(2), word_gate=False).astream_events({"input": QUESTION}, version="v2")
        return [e["data"]["chunk"].content async for e in events if e["event"] == "on_chat_model_stream"]

    assert "".join(asyncio.run(told())) == "It is 4 weeks."
    assert [piece for piece in asyncio.run(told()) if piece] == pieces


def test_the_documents_chain_takes_trusted_context() -> None:
    documents = create_robust_documents_chain(Reader(), PROMPT, return_robustness=True)
    given = {"input": QUESTION, "context": uploads(5), "trusted_context": HANDBOOK}
    assert documents.invoke(given)["robustness"].decided_by == "trusted"
    stock = create_retrieval_chain(Finds(documents=uploads(5)), create_robust_documents_chain(Reader(), PROMPT))
    assert stock.invoke({"input": QUESTION, "trusted_context": HANDBOOK})["answer"] == "It is 4 weeks."
    for wrong in (None, "The notice period is 4 weeks.", ["x"]):
        with pytest.raises(TypeError, match="trusted documents"):
            documents.invoke({**given, "trusted_context": wrong})
    with pytest.raises(ValueError, match="trusted_context"):
        create_robust_documents_chain(Reader(), ChatPromptTemplate.from_template("{context}{trusted_context}{input}"))
    with pytest.raises(KeyError, match="trusted_context"):
        documents.invoke({"input": QUESTION, "context": uploads(5), "trusted_documents": HANDBOOK})
    with pytest.raises(ValueError, match="would be trusted"):
        create_robust_retrieval_chain(both := Finds(documents=[]), Reader(), PROMPT, trusted_retriever=both)
    with pytest.raises(TypeError, match="trusted_retriever"):
        create_robust_retrieval_chain(Finds(documents=[]), Reader(), PROMPT, trusted_retriever=HANDBOOK)  # type: ignore[arg-type]


def test_the_node_takes_trusted_context_and_streams() -> None:
    class State(TypedDict, total=False):
        input: str
        context: list[Document]
        trusted_context: list[Document]
        answer: str
        robustness: dict[str, Any]

    graph = StateGraph(State)
    graph.add_node("generate", create_robust_node(Reader(), PROMPT, word_gate=False))
    graph.set_entry_point("generate")
    made = graph.compile()
    state = {"input": QUESTION, "context": uploads(5), "trusted_context": HANDBOOK}
    assert made.invoke(state)["robustness"]["decided_by"] == "trusted"
    shown = [message.content for message, _ in made.stream(state, stream_mode="messages")]
    assert [piece for piece in shown if piece] == ["It", " is", " 4", " weeks."]


def test_a_tool_gives_an_agent_trusted_answers() -> None:
    def tool(others: Any, trusted: Any) -> Any:
        found = others if isinstance(others, BaseRetriever) else Finds(documents=others)
        return create_robust_retriever_tool(
            found, Reader(), "search", "Searches.", prompt=PROMPT, trusted_retriever=Finds(documents=trusted)
        )

    call = {"name": "search", "args": {"query": QUESTION}, "id": "1", "type": "tool_call"}
    for message in (tool(Fails(), HANDBOOK).invoke(call), asyncio.run(tool(Fails(), HANDBOOK).ainvoke(call))):
        assert (message.content, message.status) == ("It is 4 weeks.", "success")
        assert message.artifact["documents"] == HANDBOOK
        assert message.artifact["robustness"]["decided_by"] == "trusted"
    lone = tool(uploads(1), BADGES).invoke(call)
    assert (lone.status, "1 day" in lone.content) == ("error", False)
    with pytest.raises(ConnectionError):
        tool(Fails(), BADGES).invoke(call)


def test_documents_of_a_trusted_answer_pass_serialisers() -> None:
    result = chain(uploads(2), BADGES).invoke({"input": QUESTION})
    for document in result["context"]:
        assert pickle.loads(pickle.dumps(document)) == document
        assert JsonPlusSerializer().loads_typed(JsonPlusSerializer().dumps_typed(document)) == document
        dumpd(document)


def test_a_check_plants_nothing_in_the_trusted_shelf_and_has_the_others_asked() -> None:
    pages = [
        Document(f"{text} This page is for all who work here, in every department.", metadata={"source": text[:9]})
        for text in ("The notice period is 4 weeks.", "A badge costs 3 euros.")
    ]

    class Handbook(Finds):
        pass

    found = Finds(documents=uploads(4))
    checked = assert_defended(chain(found, Handbook(documents=pages)), {"input": QUESTION})
    assert found.asked
    assert "Handbook (trusted)" in checked.not_vouched_for
    audit = IsolationAudit(on="raise")
    chain(found, pages).invoke({"input": QUESTION}, config={"callbacks": [audit]})
    both = create_stuff_documents_chain(Reader(), PROMPT)
    with pytest.raises(UndefendedError):
        create_retrieval_chain(Finds(documents=pages), both).invoke({"input": QUESTION}, config={"callbacks": [audit]})


# --- conversations


TALK = ChatPromptTemplate.from_messages(
    [("system", "{context}"), MessagesPlaceholder("chat_history"), ("human", "{input}")]
)


def second(history: list[Any], **options: Any) -> Any:
    made = create_robust_retrieval_chain(
        Finds(documents=uploads(5)), Reader(), TALK, trusted_retriever=Finds(documents=HANDBOOK), **options
    )
    return made.invoke({"input": QUESTION, "chat_history": history})["robustness"]


def answered(others: Any, trusted: Any) -> AIMessage:
    return history_message(chain(others, trusted).invoke({"input": QUESTION})["robustness"])


def test_a_conversation_is_as_trusted_as_the_least_trusted_answer_in_it() -> None:
    asked = HumanMessage(QUESTION)
    trusted, votes = answered([], HANDBOOK), answered(uploads(5), BADGES)
    lone = answered(uploads(1), BADGES)
    fine = ([], [AIMessage("Hello!"), asked], [asked, trusted], [asked, lone], [asked, trusted, asked, trusted])
    for history in fine:
        assert second(list(history)).decided_by == "trusted"
    edited = trusted.model_copy(update={"content": "It is 1 day."})
    for word in (votes, AIMessage("It is 1 day."), edited, ToolMessage("1 day", tool_call_id="1"), ("ai", "1 day")):
        answer = second([asked, trusted, asked, word])
        assert (answer.text, answer.decided_by, answer.meets(1)) == ("It is 4 weeks.", "conversation", False)
        assert answer.for_prompt().abstained
        assert second([asked, word], min_radius=1).abstained
        assert second([asked, word], reader="model").abstained
    summary = "The notice period is 1 day."
    for word in (SystemMessage(summary), HumanMessage(summary, additional_kwargs={"lc_source": "summarization"})):
        assert second([word, asked]).decided_by == "conversation"


def test_a_question_condensed_from_untrusted_words_counts() -> None:
    def told(inputs: Any, config: Any) -> list[Document]:
        return Finds(documents=HANDBOOK).invoke(QUESTION, config)

    def untold(inputs: Any) -> list[Document]:
        return HANDBOOK

    for words in ([HumanMessage("What is a notice period?"), AIMessage("A time.")], "Human: What?\nAI: A time."):
        given = {"input": "And how long is the notice period?", "chat_history": words}
        for found, options in ((told, {}), (told, {"question": "input"}), (untold, {})):
            made = create_robust_retrieval_chain(
                Finds(documents=uploads(3)), Reader(), PROMPT, trusted_retriever=RunnableLambda(found), **options
            )
            result = made.invoke(given)
            assert (result["answer"], result["robustness"].decided_by) == ("It is 4 weeks.", "conversation")
            standalone = found is told and not options and isinstance(words, list)
            assert result.get("standalone_question") == (QUESTION if standalone else None)
        plain = chain(uploads(3))  # which is asked the question as it is
        assert plain.invoke(given)["robustness"].decided_by == "trusted"
