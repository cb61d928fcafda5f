"""Chat engines that isolate the retrieved nodes; LlamaIndex's own put all of them into one system prompt."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from inspect import signature
from typing import TYPE_CHECKING, Any, ClassVar, cast

from llama_index.core.base.llms.types import ChatMessage, MessageRole
from llama_index.core.base.response.schema import RESPONSE_TYPE
from llama_index.core.chat_engine import CondensePlusContextChatEngine, ContextChatEngine
from llama_index.core.chat_engine.types import AgentChatResponse, BaseChatEngine, StreamingAgentChatResponse
from llama_index.core.llms import LLM
from llama_index.core.memory import ChatMemoryBuffer, Memory
from llama_index.core.prompts import BasePromptTemplate
from llama_index.core.schema import NodeWithScore, QueryBundle, QueryType
from llama_index.core.tools import ToolOutput
from typing_extensions import Unpack

from llamaindex_robustrag.conversation import aside_prompt, from_conversation
from llamaindex_robustrag.llm import blocks_the_loop
from llamaindex_robustrag.query_engine import check_names, check_parts, check_trusted, synthesizer_of
from llamaindex_robustrag.reports import REPORT, robust_answer
from llamaindex_robustrag.synthesizer import RobustRAGSynthesizer, SynthesizerOptions
from robustrag_integrations.audit.check import having, trusted_retrieval
from robustrag_integrations.defenses.trust import Later
from robustrag_integrations.models.base import TextModel
from robustrag_integrations.text.prompts import ABSTENTION

if TYPE_CHECKING:
    from typing import Self  # Python 3.11

_MOST_TEXTS = 1_000  # for people, which are known again in a history


@dataclass
class _Turn:
    """One message of a conversation, and what answers it; LlamaIndex takes it for a response synthesizer.

    Attributes:
        message: the user's.
        query: the question that it was condensed to, if it was.
        later: the nodes that are asked one by one; the others are trusted then. None: there are no trusted ones.
    """

    message: str
    query: str | None = None
    later: Later | None = None
    synthesizer: RobustRAGSynthesizer | Any = None
    response: Any = None

    def synthesize(self, query: QueryType, nodes: list[NodeWithScore]) -> RESPONSE_TYPE:
        self.response = self.synthesizer.synthesize(self.query or query, **self._shelves(nodes))
        return self.response  # type: ignore[no-any-return]

    async def asynthesize(self, query: QueryType, nodes: list[NodeWithScore]) -> RESPONSE_TYPE:
        self.response = await self.synthesizer.asynthesize(self.query or query, **self._shelves(nodes))
        return self.response  # type: ignore[no-any-return]

    def _shelves(self, nodes: list[NodeWithScore]) -> dict[str, Any]:
        return {"nodes": nodes} if self.later is None else {"nodes": self.later, "trusted_nodes": nodes}

    def report_in(self, reply: Any) -> Any:
        """Return a chat engine's reply, with the robust response and its report."""
        said = {"message": self.query or self.message}
        told = "see raw_output.metadata"
        reply.sources.append(ToolOutput(tool_name=REPORT, content=told, raw_input=said, raw_output=self.response))
        reply.metadata, reply.source_nodes = self.response.metadata, self.response.source_nodes
        return reply


_TURN: ContextVar[_Turn] = ContextVar("robustrag_turn")


class _TurnMemory:
    """A memory as one turn reads and writes it, whatever its kind: answers in it are those that prompts may hold.

    Some memories ask a model about what they hold, for a summary or for facts, and put what it says into every prompt.
    """

    def __init__(self, memory: Any, turn: _Turn, engine: ReportingChatEngine) -> None:
        self._memory, self._turn, self._engine = memory, turn, engine

    def __getattr__(self, name: str) -> Any:
        return getattr(self._memory, name)

    def put(self, message: ChatMessage) -> None:
        self._memory.put(self._held(message))

    async def aput(self, message: ChatMessage) -> None:
        await self._memory.aput(self._held(message))

    def set(self, messages: list[ChatMessage]) -> None:
        self._memory.set(self._engine._as_held(messages))

    async def aset(self, messages: list[ChatMessage]) -> None:
        await self._memory.aset(self._engine._as_held(messages))

    def _held(self, message: ChatMessage) -> ChatMessage:
        if message.role != MessageRole.ASSISTANT:
            return message
        answer = robust_answer(self._turn.response)
        said = answer if from_conversation(answer) else answer.for_prompt()
        if said.text != message.content:
            self._engine._told.append(message.content or "")
        return ChatMessage(role=message.role, content=said.text, additional_kwargs={REPORT: said.decided_by})


class ChatOptions(SynthesizerOptions, total=False):
    """The arguments of LlamaIndex's own chat engines, and those of `RobustRAGSynthesizer`."""

    prefix_messages: list[ChatMessage]
    condense_prompt: BasePromptTemplate | str
    verbose: bool


class ReportingChatEngine(BaseChatEngine):
    """Adds the robust answer's report to what the four chat methods return.

    The report is at `response.metadata["robustrag"]`, and the whole response at `response.sources[-1].raw_output`. The
    memory has of an answer what prompts may hold (`RobustAnswer.for_prompt`), whatever people are shown, and with it
    who decided it (`additional_kwargs["robustrag"]`). What no document answers (greetings, questions about the
    conversation) is answered from the conversation alone, and the report says so.
    """

    _THEIRS: ClassVar[tuple[str, ...]] = ()  # further arguments of LlamaIndex's own engine
    _llm: LLM
    _synthesizer: RobustRAGSynthesizer | None = None
    _small_talk: bool = True
    _trusted_retriever: Any = None
    _node_postprocessors: list[Any]
    _stored: Any = None

    @property
    def _memory(self) -> Any:
        turn = _TURN.get(None)
        return self._stored if turn is None else _TurnMemory(self._stored, turn, self)

    @_memory.setter
    def _memory(self, memory: Any) -> None:
        self._stored = memory
        self._told: deque[str] = deque(maxlen=_MOST_TEXTS)  # for people, where the memory has something else

    @property
    def response_synthesizer(self) -> RobustRAGSynthesizer:
        """The synthesizer of the engine's answers."""
        if self._synthesizer is None:  # made without `from_defaults`
            self._synthesizer = RobustRAGSynthesizer(self._llm)
        return self._synthesizer

    def _new_turn(
        self,
        conversation: Sequence[ChatMessage],
        streaming: bool,
        unread: Sequence[ChatMessage] = (),
        *,
        tainted: bool,
    ) -> _Turn:
        """Return the turn of one message; `unread` are earlier messages that are not in front of every prompt."""
        turn, synthesizer = _TURN.get(), self.response_synthesizer
        asks = self._small_talk and synthesizer.takes_asides
        turn.synthesizer = synthesizer.with_changes(
            streaming=streaming,
            conversation=conversation,
            aside=aside_prompt(unread, turn.message) if asks else None,
            condensed=unread,
            tainted=tainted,
        )
        return turn

    def _get_nodes(self, message: str) -> list[NodeWithScore]:
        if self._trusted_retriever is None:
            return super()._get_nodes(message)  # type: ignore[misc, no-any-return]
        self._retrieve_later(message)
        with trusted_retrieval():
            nodes: list[NodeWithScore] = self._trusted_retriever.retrieve(message)
        for postprocessor in self._node_postprocessors:
            nodes = postprocessor.postprocess_nodes(nodes, query_bundle=QueryBundle(message))
        return nodes

    async def _aget_nodes(self, message: str) -> list[NodeWithScore]:
        if self._trusted_retriever is None:
            return await super()._aget_nodes(message)  # type: ignore[misc, no-any-return]
        self._retrieve_later(message)
        with trusted_retrieval():
            nodes: list[NodeWithScore] = await self._trusted_retriever.aretrieve(message)
        for postprocessor in self._node_postprocessors:
            nodes = await postprocessor.apostprocess_nodes(nodes, query_bundle=QueryBundle(message))
        return nodes

    def _retrieve_later(self, message: str) -> None:
        theirs: Any = super()
        _TURN.get().later = Later(lambda: theirs._get_nodes(message), lambda: theirs._aget_nodes(message))

    def _is_tainted(self, history: Sequence[ChatMessage]) -> bool:
        """True if a conversation holds words of assistants or tools that no trusted source decided.

        What an assistant said before the first message of the user is the program's, unless it is an answer of ours.
        A memory that summarises or extracts puts what it made of answers into messages of its own.
        """
        if history and getattr(self._stored, "memory_blocks", None):
            return True
        keeps = isinstance(self._stored, (ChatMemoryBuffer, Memory))
        asked = False
        for message in history:
            asked |= message.role == MessageRole.USER
            if message.role in (MessageRole.TOOL, MessageRole.FUNCTION):
                return True
            if message.role == MessageRole.SYSTEM and not keeps:
                return True
            if message.role != MessageRole.ASSISTANT or not message.blocks or message.content in self._told:
                continue
            decided = message.additional_kwargs.get(REPORT, "unknown" if asked else None)
            if decided not in (None, "trusted"):
                return True
        return False

    def _for_prompts(self, conversation: Sequence[ChatMessage]) -> list[ChatMessage]:
        """Return a conversation as prompts may hold it, without the marks, which some LLMs write into their prompts."""
        held = self._as_held(conversation)
        return [ChatMessage(role=m.role, content=m.content) if REPORT in m.additional_kwargs else m for m in held]

    def _as_held(self, conversation: Sequence[ChatMessage]) -> list[ChatMessage]:
        """Return a conversation, also one that was made of what people were shown, as a memory holds it."""
        silent = ChatMessage(role=MessageRole.ASSISTANT, content=ABSTENTION, additional_kwargs={REPORT: None})
        told = self._told
        return [silent if m.role == MessageRole.ASSISTANT and m.content in told else m for m in conversation]

    @classmethod
    def from_defaults(
        cls,
        retriever: Any,
        *,
        llm: LLM | TextModel | None = None,
        response_synthesizer: RobustRAGSynthesizer | None = None,
        chat_history: list[ChatMessage] | None = None,
        memory: Any = None,
        system_prompt: str | None = None,
        node_postprocessors: list[Any] | None = None,
        small_talk: bool = True,
        trusted_retriever: Any = None,
        **settings: Unpack[ChatOptions],
    ) -> Self:
        """Create an engine from its parts.

        Args:
            retriever: finds the nodes for each message, or for the question that it is condensed to.
            llm: answers, and condenses; None: the synthesizer's, or `Settings.llm`.
            response_synthesizer: makes the answers; None: a new one from `settings`.
            chat_history, memory, system_prompt, node_postprocessors: as LlamaIndex's engine takes them. Of a history
                that was stored by a program of yours nothing is known: store `engine.chat_history`.
            small_talk: where no document answers, ask once more without documents, so that greetings and questions
                about the conversation get a reply; False: an abstention.
            trusted_retriever: as in `RobustRAGQueryEngine`: what it finds decides, and `retriever` is asked where that
                does not hold the answer.
            settings: `prefix_messages` of the context engine; `condense_prompt` (with `{chat_history}` and
                `{question}`) and `verbose` of the condensing one; the other arguments of `RobustRAGSynthesizer`.
        """
        check_parts(retriever, node_postprocessors)
        check_trusted(trusted_retriever, retriever, node_postprocessors)
        given: dict[str, Any] = {**settings}
        theirs = {name: given.pop(name) for name in cls._THEIRS if name in given}
        check_names(given, [*signature(cls.from_defaults).parameters, *cls._THEIRS])
        synthesizer = synthesizer_of(response_synthesizer, llm, None, **given)
        made: Any = super().from_defaults(  # type: ignore[misc]
            retriever,
            llm=synthesizer.llm,
            chat_history=chat_history,
            memory=memory,
            system_prompt=system_prompt,
            node_postprocessors=node_postprocessors,
            **theirs,
        )
        made._synthesizer, made._small_talk, made._trusted_retriever = synthesizer, small_talk, trusted_retriever
        return cast("Self", made)

    def chat(self, message: str, chat_history: list[ChatMessage] | None = None, **more: Any) -> AgentChatResponse:
        """Answer one message."""
        with having(_TURN, turn := _Turn(str(message))):
            return turn.report_in(super().chat(message, chat_history, **more))  # type: ignore

    def stream_chat(
        self, message: str, chat_history: list[ChatMessage] | None = None, **more: Any
    ) -> StreamingAgentChatResponse:
        """Answer one message, in pieces."""
        with having(_TURN, turn := _Turn(str(message))):
            return turn.report_in(super().stream_chat(message, chat_history, **more))  # type: ignore

    async def achat(
        self, message: str, chat_history: list[ChatMessage] | None = None, **more: Any
    ) -> AgentChatResponse:
        """`chat` without blocking the event loop."""
        with having(_TURN, turn := _Turn(str(message))):
            return turn.report_in(await super().achat(message, chat_history, **more))  # type: ignore

    async def astream_chat(
        self, message: str, chat_history: list[ChatMessage] | None = None, **more: Any
    ) -> StreamingAgentChatResponse:
        """`stream_chat` without blocking the event loop."""
        with having(_TURN, turn := _Turn(str(message))):
            return turn.report_in(await super().astream_chat(message, chat_history, **more))  # type: ignore


class RobustContextChatEngine(ReportingChatEngine, ContextChatEngine):  # type: ignore[misc]
    """A `ContextChatEngine` that isolates the retrieved nodes; the conversation precedes each prompt.

    Examples:
        >>> engine = RobustContextChatEngine.from_defaults(index.as_retriever(similarity_top_k=10), llm=llm)
        >>> reply = engine.chat("Who won?")
        >>> str(reply), reply.metadata["robustrag"]["radius"]
    """

    _THEIRS = ("prefix_messages",)

    def _get_response_synthesizer(self, chat_history: list[ChatMessage], streaming: bool = False) -> Any:
        return self._new_turn(
            [*self._prefix_messages, *self._for_prompts(chat_history)],
            streaming,
            tainted=self._is_tainted(chat_history),
        )


class RobustCondensePlusContextChatEngine(  # type: ignore[misc]
    ReportingChatEngine, CondensePlusContextChatEngine
):
    """A `CondensePlusContextChatEngine` that isolates the retrieved nodes.

    Conversation and message are condensed to one question, and that question is asked of every source.

    Examples:
        >>> engine = RobustCondensePlusContextChatEngine.from_defaults(index.as_retriever(), llm=llm)
        >>> engine.chat("Who won?")
        >>> engine.chat("And in the year before?")
    """

    _THEIRS = ("condense_prompt", "verbose")

    def _get_response_synthesizer(self, chat_history: list[ChatMessage], streaming: bool = False) -> Any:
        system = [ChatMessage(role=MessageRole.SYSTEM, content=self._system_prompt)] if self._system_prompt else []
        return self._new_turn(
            system, streaming, self._for_prompts(chat_history), tainted=self._is_tainted(chat_history)
        )

    def _condense_question(self, chat_history: list[ChatMessage], latest_message: str) -> str:
        _TURN.get().query = super()._condense_question(self._for_prompts(chat_history), latest_message)
        return _TURN.get().query or latest_message

    async def _acondense_question(self, chat_history: list[ChatMessage], latest_message: str) -> str:
        if blocks_the_loop(self._llm, "acomplete"):
            return await asyncio.to_thread(self._condense_question, chat_history, latest_message)
        _TURN.get().query = await super()._acondense_question(self._for_prompts(chat_history), latest_message)
        return _TURN.get().query or latest_message
