"""Chat engines that isolate the retrieved nodes; LlamaIndex's own put all of them into one system prompt."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, ClassVar, cast

from llama_index.core.base.llms.types import ChatMessage, MessageRole
from llama_index.core.base.response.schema import RESPONSE_TYPE
from llama_index.core.chat_engine import CondensePlusContextChatEngine, ContextChatEngine
from llama_index.core.chat_engine.types import AgentChatResponse, BaseChatEngine, StreamingAgentChatResponse
from llama_index.core.llms import LLM
from llama_index.core.schema import NodeWithScore, QueryType
from llama_index.core.tools import ToolOutput

from llamaindex_robustrag.conversation import aside_prompt, from_conversation
from llamaindex_robustrag.llm_traits import blocks_the_loop
from llamaindex_robustrag.query_engine import check_parts, synthesizer_of
from llamaindex_robustrag.reports import REPORT, Report, ResponseMetadata
from llamaindex_robustrag.synthesizer import RobustRAGSynthesizer
from robustrag_integrations.audit.checking import having
from robustrag_integrations.models.base import TextModel
from robustrag_integrations.prompts import ABSTENTION

if TYPE_CHECKING:
    from typing import Self  # Python 3.11


_MOST_OPEN = 100  # turns; of a stream that nobody reads to its end there is never an answer


class Turn:
    """One message of a conversation, and what answers it; LlamaIndex takes it for a response synthesizer.

    Attributes:
        message: the user's; None outside of a chat method.
        query: the question that it was condensed to, if it was.
        response: the response.
    """

    synthesizer: RobustRAGSynthesizer

    def __init__(self, message: str | None = None) -> None:
        self.message = message
        self.query: str | None = None
        self.response: RESPONSE_TYPE | None = None

    def synthesize(self, query: QueryType, nodes: list[NodeWithScore]) -> RESPONSE_TYPE:
        """Answer the turn's own query, if it has one."""
        self.response = self.synthesizer.synthesize(self.query or query, nodes)
        return self.response

    async def asynthesize(self, query: QueryType, nodes: list[NodeWithScore]) -> RESPONSE_TYPE:
        """`synthesize` without blocking the event loop."""
        self.response = await self.synthesizer.asynthesize(self.query or query, nodes)
        return self.response


_TURN: ContextVar[Turn | None] = ContextVar("robustrag_turn", default=None)


@contextmanager
def _turn(message: str) -> Iterator[Turn]:
    turn = Turn(str(message))
    with having(_TURN, turn):
        yield turn


class ReportingChatEngine(BaseChatEngine):
    """A mixin for the four chat methods: adds the robust answer's report to what they return.

    The report is at `response.metadata["robustrag"]`, and the whole response at `response.sources[-1].raw_output`. A
    streamed one has it when the last piece is out. What no document answers (greetings, questions about the
    conversation) is answered from the conversation alone, and the report says so.
    """

    _THEIRS: ClassVar[tuple[str, ...]] = ()  # further arguments of LlamaIndex's own engine
    _llm: LLM
    _synthesizer: RobustRAGSynthesizer | None = None
    _small_talk: bool = True
    _turns: Sequence[Turn] = ()  # those whose answers may be missing from `_unspoken`
    _unspoken: frozenset[str] = frozenset()  # answers that no prompt may hold

    def __repr__(self) -> str:
        retriever: Any = getattr(self, "_retriever", None)
        return f"{type(self).__name__}({type(retriever).__name__}, {self.response_synthesizer!r})"

    @property
    def response_synthesizer(self) -> RobustRAGSynthesizer:
        """The synthesizer of the engine's answers."""
        if self._synthesizer is None:  # made without `from_defaults`
            self._synthesizer = RobustRAGSynthesizer(self._llm)
        return self._synthesizer

    def _new_turn(
        self, conversation: Sequence[ChatMessage], streaming: bool, unread: Sequence[ChatMessage] = ()
    ) -> Turn:
        """Return the turn of one message, which LlamaIndex takes for a response synthesizer.

        Args:
            conversation: messages in front of every prompt.
            streaming: True if the answer is streamed.
            unread: earlier messages that are not in front of every prompt.
        """
        turn, synthesizer = _TURN.get() or Turn(), self.response_synthesizer
        asks = turn.message is not None and self._small_talk and synthesizer.takes_asides
        aside = aside_prompt(unread, turn.message or "") if asks else None
        turn.synthesizer = synthesizer.with_changes(
            streaming=streaming, conversation=conversation, aside=aside, condensed=unread
        )
        self._turns = [*self._turns[-_MOST_OPEN:], turn]
        return turn

    def _for_prompts(self, conversation: Sequence[ChatMessage]) -> list[ChatMessage]:
        """Return a conversation as prompts may hold it: of the engine's answers, those that are fit for prompts."""
        streaming = []
        for turn in self._turns:
            answer = getattr(getattr(turn.response, "metadata", None), "robust_answer", None)
            if answer is None:
                streaming.append(turn)
            elif not from_conversation(answer) and answer.for_prompt() is not answer:
                shown = [] if hasattr(turn.response, "response_gen") else [str(turn.response)]
                self._unspoken |= {answer.text, answer.marked_text, *shown}
        self._turns = streaming
        return [
            ChatMessage(role=m.role, content=ABSTENTION)
            if m.role == MessageRole.ASSISTANT and m.content in self._unspoken
            else m
            for m in conversation
        ]

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
        **settings: Any,
    ) -> Self:
        """Create an engine from its parts.

        Args:
            retriever: finds the nodes for each message, or for the question that it is condensed to.
            llm: answers, and condenses; None: the synthesizer's, or `Settings.llm`.
            response_synthesizer: makes the answers; None: a new one from `settings`.
            chat_history: earlier messages.
            memory: keeps the conversation; None: a new one.
            system_prompt: put first in every prompt.
            node_postprocessors: applied to the nodes before they are grouped.
            small_talk: where no document answers, ask once more without documents, so that greetings and questions
                about the conversation get a reply; the report then warns that no document is behind it. False: an
                abstention.
            settings: `prefix_messages` of the context engine; `condense_prompt` (with `{chat_history}` and
                `{question}`), `skip_condense` and `verbose` of the condensing one; the other arguments of
                `RobustRAGSynthesizer`.

        Raises:
            TypeError, ValueError: arguments that exclude each other, or an invalid one.
        """
        check_parts(retriever, node_postprocessors)
        theirs = {name: settings.pop(name) for name in cls._THEIRS if name in settings}
        chosen = synthesizer_of(response_synthesizer, llm, None, **settings)
        made: Any = super().from_defaults(  # type: ignore[misc]
            retriever,
            llm=chosen.plain_llm,
            chat_history=chat_history,
            memory=memory,
            system_prompt=system_prompt,
            node_postprocessors=node_postprocessors,
            **theirs,
        )
        made._synthesizer = chosen
        made._small_talk = small_talk
        return cast("Self", made)

    def chat(self, message: str, chat_history: list[ChatMessage] | None = None, **more: Any) -> AgentChatResponse:
        """Answer one message."""
        with _turn(message) as turn:
            reply = super().chat(message, chat_history, **more)  # type: ignore[safe-super]
        return cast(AgentChatResponse, _reported(reply, turn))

    def stream_chat(
        self, message: str, chat_history: list[ChatMessage] | None = None, **more: Any
    ) -> StreamingAgentChatResponse:
        """Answer one message, in pieces."""
        with _turn(message) as turn:
            reply = super().stream_chat(message, chat_history, **more)  # type: ignore[safe-super]
        return cast(StreamingAgentChatResponse, _reported(reply, turn))

    async def achat(
        self, message: str, chat_history: list[ChatMessage] | None = None, **more: Any
    ) -> AgentChatResponse:
        """`chat` without blocking the event loop."""
        with _turn(message) as turn:
            reply = await super().achat(message, chat_history, **more)  # type: ignore[safe-super]
        return cast(AgentChatResponse, _reported(reply, turn))

    async def astream_chat(
        self, message: str, chat_history: list[ChatMessage] | None = None, **more: Any
    ) -> StreamingAgentChatResponse:
        """`stream_chat` without blocking the event loop."""
        with _turn(message) as turn:
            reply = await super().astream_chat(message, chat_history, **more)  # type: ignore[safe-super]
        return cast(StreamingAgentChatResponse, _reported(reply, turn))


def _reported(reply: Any, turn: Turn) -> Any:
    response: Any = turn.response
    reply.sources.append(
        ToolOutput(
            tool_name=REPORT,
            content="see raw_output.metadata",
            raw_input={"message": turn.query or turn.message},
            raw_output=response,
        )
    )
    report = getattr(getattr(response, "metadata", None), "report", None) or Report()
    reply.metadata = ResponseMetadata.of(getattr(reply, "metadata", None) or {}, report)
    if response is not None:
        reply.source_nodes = response.source_nodes
        if turn.synthesizer.supporting_only:
            _hide_retrieved(reply.sources[:-1], response.source_nodes)
    return reply


def _hide_retrieved(sources: Sequence[ToolOutput], shown: list[NodeWithScore]) -> None:
    """Replace all retrieved nodes with those shown, in LlamaIndex's record of the retriever's output."""
    for source in sources:
        if source.tool_name == "retriever":
            source.content, source.raw_output = "see source_nodes", shown


class RobustContextChatEngine(ReportingChatEngine, ContextChatEngine):  # type: ignore[misc]
    """A `ContextChatEngine` that isolates the retrieved nodes; the conversation precedes each prompt.

    Examples:
        >>> engine = RobustContextChatEngine.from_defaults(index.as_retriever(similarity_top_k=10), llm=llm)
        >>> reply = engine.chat("Who won?")
        >>> str(reply), reply.metadata["robustrag"]["radius"]
    """

    _THEIRS = ("prefix_messages",)

    def _get_response_synthesizer(self, chat_history: list[ChatMessage], streaming: bool = False) -> Any:
        return self._new_turn([*self._prefix_messages, *self._for_prompts(chat_history)], streaming)


class RobustCondensePlusContextChatEngine(  # type: ignore[misc]
    ReportingChatEngine, CondensePlusContextChatEngine
):
    """A `CondensePlusContextChatEngine` that isolates the retrieved nodes.

    Conversation and message are condensed to one question, and that question is asked of every group. With
    `skip_condense` the message is asked as it is, with the conversation in front.

    Examples:
        >>> engine = RobustCondensePlusContextChatEngine.from_defaults(index.as_retriever(), llm=llm)
        >>> engine.chat("Who won?")
        >>> engine.chat("And in the year before?")
    """

    _THEIRS = ("condense_prompt", "skip_condense", "verbose")

    def _get_response_synthesizer(self, chat_history: list[ChatMessage], streaming: bool = False) -> Any:
        chat_history = self._for_prompts(chat_history)
        system = [ChatMessage(role=MessageRole.SYSTEM, content=self._system_prompt)] if self._system_prompt else []
        if self._skip_condense:
            return self._new_turn([*system, *chat_history], streaming)
        return self._new_turn(system, streaming, chat_history)

    def _run_c3(self, *args: Any, **kwargs: Any) -> tuple[Any, ToolOutput, list[NodeWithScore]]:
        return _with_query(*super()._run_c3(*args, **kwargs))

    async def _arun_c3(self, *args: Any, **kwargs: Any) -> tuple[Any, ToolOutput, list[NodeWithScore]]:
        return _with_query(*await super()._arun_c3(*args, **kwargs))

    def _condense_question(self, chat_history: list[ChatMessage], latest_message: str) -> str:
        return super()._condense_question(self._for_prompts(chat_history), latest_message)

    async def _acondense_question(self, chat_history: list[ChatMessage], latest_message: str) -> str:
        chat_history = self._for_prompts(chat_history)
        if blocks_the_loop(self._llm, "acomplete"):
            return await asyncio.to_thread(self._condense_question, chat_history, latest_message)
        return await super()._acondense_question(chat_history, latest_message)


def _with_query(
    turn: Any, source: ToolOutput, nodes: list[NodeWithScore]
) -> tuple[Any, ToolOutput, list[NodeWithScore]]:
    """Set the condensed question as the turn's query."""
    turn.query = source.raw_input["message"]
    return turn, source, nodes
