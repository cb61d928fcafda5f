"""Trust first in LlamaIndex: a trusted retriever decides, and nothing that another one finds changes its answer."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.base.llms.types import (
    ChatMessage,
    ChatResponse,
    MessageRole,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
)
from llama_index.core.llms.callbacks import llm_chat_callback
from llama_index.core.memory import ChatSummaryMemoryBuffer
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.prompts import ChatPromptTemplate, PromptTemplate
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.response_synthesizers import get_response_synthesizer
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode

from llamaindex_robustrag import (
    IsolationAudit,
    RobustCondensePlusContextChatEngine,
    RobustContextChatEngine,
    RobustQueryEngineTool,
    RobustRAGQueryEngine,
    RobustRAGSynthesizer,
    assert_defended,
    robust_answer,
)
from llamaindex_robustrag.conversation import from_conversation
from robustrag_integrations import TrustedError
from robustrag_integrations.text.prompts import SILENCE_REQUEST
from tests.contract.llamaindex import Raw
from tests.llamaindex.fakes import QUESTION, AsyncFactReader, FactReader

PROMPT = PromptTemplate("Read this.\n{context_str}\nQuestion: {query_str}\nAnswer: ")


def node(text: str, name: str, **metadata: Any) -> NodeWithScore:
    kept = TextNode(text=text, id_=f"id-{name}", metadata={"file_path": name, **metadata})
    return NodeWithScore(node=kept, score=1.0)


HANDBOOK = [
    node("The capital of France is Paris.", "handbook/france.md"),
    node("Badges cost 3 euros.", "handbook/b.md"),
]
BADGES = HANDBOOK[1:]


def uploads(count: int) -> list[NodeWithScore]:
    return [node("The capital of France is Berlin.", f"uploads/{n}.md") for n in range(count)]


class Finds(BaseRetriever):
    def __init__(self, nodes: Any) -> None:
        super().__init__()
        self.nodes, self.asked = nodes, 0

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        self.asked += 1
        if isinstance(self.nodes, Exception):
            raise self.nodes
        return list(self.nodes)


class Handbook(Finds):
    pass


def engine(others: Any, trusted: Any = HANDBOOK, llm: Any = None, **options: Any) -> RobustRAGQueryEngine:
    found = others if isinstance(others, Finds) else Finds(others)
    return RobustRAGQueryEngine.from_args(
        found, llm=llm or FactReader(), trusted_retriever=Handbook(trusted), text_qa_template=PROMPT, **options
    )


def test_the_prompt_is_the_stock_one_behind_one_sentence() -> None:
    assert str(engine([]).with_retriever(Finds(uploads(3))).query(QUESTION)) == "Paris"
    ours, bare, stock = FactReader(), FactReader(), FactReader()
    engine(uploads(3), llm=ours).query(QUESTION)
    engine(uploads(3), llm=bare, silence_request="none").query(QUESTION)
    synthesizer = get_response_synthesizer(llm=stock, text_qa_template=PROMPT)
    RetrieverQueryEngine(Finds(HANDBOOK), synthesizer).query(QUESTION)
    assert ours.seen == [f"{SILENCE_REQUEST}\n\n{stock.seen[0]}"]
    assert bare.seen == stock.seen


def test_a_chat_prompt_is_the_stock_one_behind_one_sentence() -> None:
    said = [(MessageRole.SYSTEM, "Read this.\n{context_str}"), (MessageRole.USER, "{query_str}")]
    prompt = ChatPromptTemplate([ChatMessage(role=role, content=text) for role, text in said])
    asked: list[list[ChatMessage]] = []

    class Notes(AsyncFactReader):
        @llm_chat_callback()
        def chat(self, messages: Any, **kwargs: Any) -> Any:
            asked.append(list(messages))
            return super().chat(messages, **kwargs)

    for options in ({}, {"silence_request": "none"}):
        retriever = Handbook(HANDBOOK)
        RobustRAGQueryEngine.from_args(
            Finds(uploads(3)), llm=Notes(), trusted_retriever=retriever, text_qa_template=prompt, **options
        ).query(QUESTION)
    RetrieverQueryEngine(Finds(HANDBOOK), get_response_synthesizer(llm=Notes(), text_qa_template=prompt)).query(
        QUESTION
    )
    ours, bare, stock = ([(m.role, m.content) for m in messages] for messages in asked)
    [(first, text), last] = stock
    assert ours == [(first, f"{SILENCE_REQUEST}\n\n{text}"), last]
    assert bare == stock


@pytest.mark.parametrize(
    "message",
    [
        ChatMessage(role="assistant", blocks=[TextBlock(text="I don't know"), ToolCallBlock(tool_name="f")]),
        ChatMessage(role="assistant", content="I don't know", additional_kwargs={"tool_calls": [{"id": "1"}]}),
        ChatMessage(role="assistant", blocks=[ThinkingBlock(content="I don't know")]),
        ChatMessage(role="assistant", content="I don't know", additional_kwargs={"finish_reason": "length"}),
    ],
)
@pytest.mark.parametrize("streaming", [False, True])
def test_the_phrase_of_a_reply_that_is_no_whole_answer_lets_nobody_in(message: ChatMessage, streaming: bool) -> None:
    said = ChatResponse(message=message, delta=message.content)
    others = Finds(uploads(5))
    with pytest.raises(TrustedError):
        list(engine(others, llm=Raw(reply=lambda p: said), streaming=streaming).query(QUESTION).response_gen)
    assert others.asked == 0


def test_what_of_the_shelf_does_not_fit_is_no_silence() -> None:
    pages = [node(f"Page {n}. " + "Badges cost 3 euros and are blue. " * 12, f"handbook/{n}.md") for n in range(9)]
    others, small = Finds(uploads(5)), FactReader(window=600)
    for streaming in (False, True):
        with pytest.raises(TrustedError, match="did not fit"):
            list(engine(others, pages, llm=small, streaming=streaming).query(QUESTION).response_gen)
    assert len(small.seen) == 2  # one prompt each, and no refining

    async def streamed() -> None:
        made = engine(others, pages, llm=AsyncFactReader(window=600), streaming=True)
        response: Any = await made.aquery(QUESTION)
        assert [piece async for piece in response.response_gen] == []

    with pytest.raises(TrustedError, match="did not fit"):
        asyncio.run(streamed())
    assert others.asked == 0
    response = engine(others, [*HANDBOOK, *pages], llm=small).query(QUESTION)
    answer = robust_answer(response)
    assert (str(response), answer.decided_by) == ("Paris", "trusted")
    assert "cut to fit" in answer.warnings[0]


class Keeps(BaseNodePostprocessor):
    """Keeps two nodes, uploads first; `seen` are the ids that it was given."""

    seen: list[list[str]]

    def _postprocess_nodes(self, nodes: list[NodeWithScore], query_bundle: Any = None) -> list[NodeWithScore]:
        self.seen.append([n.node_id for n in nodes])
        return sorted(nodes, key=lambda n: "Berlin" not in n.node.text)[:2]


def test_postprocessors_see_each_shelf_by_itself() -> None:
    for kind in (None, *ENGINES):
        keeps = Keeps(seen=[])
        options: dict[str, Any] = {"node_postprocessors": [keeps]}
        made = engine(uploads(5), **options) if kind is None else chat(kind, uploads(5), HANDBOOK, **options)
        response = made.query(QUESTION) if kind is None else made.chat(QUESTION)
        assert (str(response), robust_answer(response).decided_by) == ("Paris", "trusted")
        assert keeps.seen == [[n.node_id for n in HANDBOOK]]


@pytest.mark.parametrize("kind", [list, tuple, iter])
def test_nodes_in_hand_may_be_trusted(kind: Any) -> None:
    synthesizer = RobustRAGSynthesizer(FactReader(), text_qa_template=PROMPT, when_empty="ask_others")
    response: Any = synthesizer.synthesize(QUESTION, uploads(5), trusted_nodes=kind(HANDBOOK))
    assert (str(response), robust_answer(response).decided_by) == ("Paris", "trusted")
    assert response.source_nodes == HANDBOOK
    made = engine(uploads(5), when_empty="ask_others")
    made._trusted_retriever.retrieve = lambda query: None  # type: ignore[union-attr,method-assign]
    with pytest.raises(TypeError, match="trusted_nodes must"):
        made.query(QUESTION)
    with pytest.raises(ValueError, match="would be trusted"):
        RobustRAGQueryEngine.from_args(both := Finds([]), llm=FactReader(), trusted_retriever=both)
    with pytest.raises(TypeError, match="trusted_nodes"):
        synthesizer.synthesize(QUESTION, [], trusted_nodes=["text"])
    with pytest.raises(TypeError, match="trusted_retriever"):
        engine([]).from_args(Finds([]), llm=FactReader(), trusted_retriever=HANDBOOK)  # type: ignore[arg-type]


def test_a_tool_gives_an_agent_trusted_answers() -> None:
    def tool(others: Any, trusted: Any) -> Any:
        return RobustQueryEngineTool.from_defaults(engine(others, trusted), name="facts", description="Facts.")

    output = tool(ConnectionError("down"), HANDBOOK).call(QUESTION)
    assert (output.content, output.is_error) == ("Paris", False)
    assert tool(uploads(1), BADGES).call(QUESTION).is_error


def test_a_check_plants_nothing_in_the_trusted_shelf_and_has_the_others_asked() -> None:
    others = Finds(uploads(4))
    checked = assert_defended(engine(others), QUESTION)
    assert others.asked
    assert "Handbook (trusted)" in checked.not_vouched_for
    assert IsolationAudit


# --- conversations

ENGINES = (RobustContextChatEngine, RobustCondensePlusContextChatEngine)


def chat(kind: Any, others: Any, trusted: Any, history: list[ChatMessage] | None = None, **options: Any) -> Any:
    found = others if isinstance(others, Finds) else Finds(others)
    return kind.from_defaults(
        found, llm=FactReader(), trusted_retriever=Handbook(trusted), chat_history=history, **options
    )


@pytest.mark.parametrize("kind", ENGINES)
def test_a_conversation_is_as_trusted_as_the_least_trusted_answer_in_it(kind: Any) -> None:
    made = chat(kind, uploads(5), HANDBOOK)
    for _ in range(3):
        reply = made.chat(QUESTION)
        assert (str(reply), reply.metadata["robustrag"]["decided_by"]) == ("Paris", "trusted")
        assert reply.source_nodes == HANDBOOK
    made._trusted_retriever = Handbook(BADGES)
    assert made.chat(QUESTION).metadata["robustrag"]["decided_by"] == "votes"
    made._trusted_retriever = Handbook(HANDBOOK)
    after = robust_answer(made.chat(QUESTION))
    assert (after.text, after.decided_by, after.meets(1)) == ("Paris", "conversation", False)
    assert after.for_prompt().abstained


@pytest.mark.parametrize("kind", ENGINES)
def test_words_of_unknown_origin_count_and_a_greeting_of_the_program_does_not(kind: Any) -> None:
    def said(role: MessageRole, text: str) -> ChatMessage:
        return ChatMessage(role=role, content=text)

    hello = said(MessageRole.ASSISTANT, "Hello!")
    asked, told = said(MessageRole.USER, "Who?"), said(MessageRole.ASSISTANT, "Bo Ek.")
    for history, decided in (([hello], "trusted"), ([hello, asked], "trusted"), ([asked, told], "conversation")):
        reply = chat(kind, uploads(3), HANDBOOK, history).chat(QUESTION)
        assert reply.metadata["robustrag"]["decided_by"] == decided


@pytest.mark.parametrize("kind", ENGINES)
def test_a_history_keeps_who_decided_and_a_reply_from_an_untrusted_conversation_is_part_of_it(kind: Any) -> None:
    class Talks(FactReader):
        def _said(self, prompt: str) -> str:
            if "No document answers" not in prompt:
                return super()._said(prompt)
            return "I told you: Berlin." if "Berlin" in prompt else "Hello."

    first = chat(kind, [], HANDBOOK)
    first.chat(QUESTION)
    later = chat(kind, uploads(3), HANDBOOK).chat(QUESTION, chat_history=first.chat_history)
    assert later.metadata["robustrag"]["decided_by"] == "trusted"
    for others, decided in ((uploads(5), "conversation"), ([], "trusted")):
        made = kind.from_defaults(Finds(others), llm=Talks(), trusted_retriever=Handbook(BADGES))
        made.chat(QUESTION)
        made._retriever = Finds([])
        aside = made.chat("And what did you tell me?")
        assert from_conversation(robust_answer(aside))
        kept = made.chat_history[2:]  # the memory forgets the answer, and not what was said about it
        after = chat(kind, [], HANDBOOK, kept).chat(QUESTION)
        assert (str(after), after.metadata["robustrag"]["decided_by"]) == ("Paris", decided)


@pytest.mark.parametrize("kind", ENGINES)
def test_a_greeting_gets_a_reply_where_the_shelf_is_silent_or_a_model_makes_something_up(kind: Any) -> None:
    class Greets(FactReader):
        about: str

        def _said(self, prompt: str) -> str:
            return "Hello." if "No document answers" in prompt else self.about

    made = chat(kind, others := Finds([]), HANDBOOK)
    for about, asked in (("I don't know", 2), ("Certainly delightful.", 0)):
        made._synthesizer = RobustRAGSynthesizer(Greets(about=about))
        others.asked = 0
        assert str(made.chat("How are you, and what is your name?")) == "Hello."
        assert "".join(made.stream_chat("How are you, and what is your name?").response_gen) == "Hello."
        assert others.asked == asked
    made._synthesizer = RobustRAGSynthesizer(Greets(about=""))
    with pytest.raises(TrustedError, match="empty"):
        made.chat("How are you, and what is your name?")


@pytest.mark.parametrize("kind", ENGINES)
def test_chats_stream_and_are_asked_in_a_loop(kind: Any) -> None:
    streamed = chat(kind, uploads(3), HANDBOOK).stream_chat(QUESTION)
    assert "".join(streamed.response_gen) == "Paris"
    assert streamed.metadata["robustrag"]["decided_by"] == "trusted"
    for shelf, said in ((BADGES, ("Berlin", "votes")), (HANDBOOK, ("Paris", "trusted"))):
        reply = asyncio.run(chat(kind, uploads(3), shelf).achat(QUESTION))
        assert (str(reply), reply.metadata["robustrag"]["decided_by"]) == said


def test_a_summary_of_untrusted_answers_is_of_unknown_origin() -> None:
    memory = ChatSummaryMemoryBuffer.from_defaults(llm=FactReader(), token_limit=12)
    made = chat(RobustContextChatEngine, uploads(5), BADGES, memory=memory)
    made.chat(QUESTION)
    made._trusted_retriever = Handbook(HANDBOOK)
    for _ in range(3):
        answer = robust_answer(made.chat(QUESTION))
        assert (answer.decided_by, answer.meets(1)) == ("conversation", False)
