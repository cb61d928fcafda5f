"""Calls a LlamaIndex LLM with one prompt: sync or async, streamed or not.

The calls are `chat` and `complete`, never `predict`, which takes every keyword argument for a template variable. The
LLM's own decorators emit its events, spans and callbacks and honour its rate limiter.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from llama_index.core.base.llms.generic_utils import messages_to_prompt as generic_messages_to_prompt
from llama_index.core.base.llms.types import ChatMessage, ChatResponse, CompletionResponse, MessageRole
from llama_index.core.bridge.pydantic import BaseModel, ConfigDict, Field
from llama_index.core.llms import LLM, CustomLLM
from llama_index.core.llms.structured_llm import StructuredLLM
from llama_index.core.prompts import ChatPromptTemplate

from llamaindex_robustrag.audit import asked
from llamaindex_robustrag.caveats import llm_repeats
from llamaindex_robustrag.message_text import MessageText, as_messages
from llamaindex_robustrag.replies import Streamed, response_of
from robustrag_integrations.answers.determinism import Repeats
from robustrag_integrations.models.base import Response
from robustrag_integrations.replies.reply import Piece
from robustrag_integrations.replies.structured import SCHEMA
from robustrag_integrations.reply_text.reasoning import parts_of

_CUT = ("length", "content_filter", "tool_calls")


def plain_llm(llm: LLM) -> LLM:
    """Return the LLM inside structured ones."""
    while isinstance(llm, StructuredLLM):
        llm = llm.llm
    return llm


def blocks_the_loop(llm: LLM, method: str) -> bool:
    """True if the LLM's asynchronous method is `CustomLLM`'s, which calls the synchronous one on the event loop."""
    return next((c for c in type(llm).__mro__ if method in c.__dict__), None) is CustomLLM


class PlainCalls:
    """Takes a prompt and returns a reply, with its text as read by the LLM's own `output_parser`.

    Args:
        llm: any LLM that is not a structured one.
        prefix: messages in front of every prompt: a conversation so far.
        kwargs: passed on with every call, such as `{"temperature": 0.0}`.
    """

    def __init__(self, llm: LLM, prefix: Sequence[ChatMessage], kwargs: Mapping[str, Any]) -> None:
        self._llm = llm
        self._prefix = tuple(prefix)
        self._kwargs = dict(kwargs)
        self._chats = llm.metadata.is_chat_model

    @property
    def repeats(self) -> Repeats:
        """The model's reproducibility, by its settings."""
        return llm_repeats(self._llm, self._kwargs)

    @property
    def blocks(self) -> bool:
        """True if asynchronous calls would block the event loop."""
        return blocks_the_loop(self._llm, "achat" if self._chats else "acomplete")

    @property
    def blocks_streaming(self) -> bool:
        """True if asynchronous streaming would block the event loop."""
        return blocks_the_loop(self._llm, "astream_chat" if self._chats else "astream_complete")

    def ask(self, prompt: str) -> Response:
        """Return the reply to a prompt."""
        with asked(prompt):
            if self._chats:
                response = response_of(self._llm.chat(self._messages(prompt), **self._kwargs))
            else:
                response = response_of(self._llm.complete(self._text(prompt), formatted=True, **self._kwargs))
        return self._parsed(response)

    async def aask(self, prompt: str) -> Response:
        """`ask` in an event loop."""
        with asked(prompt):
            if self._chats:
                response = response_of(await self._llm.achat(self._messages(prompt), **self._kwargs))
            else:
                response = response_of(await self._llm.acomplete(self._text(prompt), formatted=True, **self._kwargs))
        return self._parsed(response)

    def stream(self, prompt: str) -> Iterator[Piece]:
        """Yield the reply in pieces, then its ending; in one piece where there is an `output_parser`."""
        if self._llm.output_parser is not None:
            response = self.ask(prompt)
            yield from (response.text or "", response)
            return
        streamed = Streamed()
        llm, kwargs = self._llm, self._kwargs
        parts: Iterator[ChatResponse | CompletionResponse]
        with asked(prompt):
            if self._chats:
                parts = llm.stream_chat(self._messages(prompt), **kwargs)
            else:
                parts = llm.stream_complete(self._text(prompt), formatted=True, **kwargs)
        for part in parts:
            yield streamed.piece_of(part)
        yield streamed.ending

    async def astream(self, prompt: str) -> AsyncIterator[Piece]:
        """`stream`; not for LLMs that would block the event loop."""
        if self._llm.output_parser is not None:
            response = await self.aask(prompt)
            yield response.text or ""
            yield response
            return
        streamed = Streamed()
        llm, kwargs = self._llm, self._kwargs
        parts: AsyncIterator[ChatResponse | CompletionResponse]
        with asked(prompt):
            if self._chats:
                parts = await llm.astream_chat(self._messages(prompt), **kwargs)
            else:
                parts = await llm.astream_complete(self._text(prompt), formatted=True, **kwargs)
        async for part in parts:
            yield streamed.piece_of(part)
        yield streamed.ending

    def _parsed(self, response: Response) -> Response:
        """Return the answer as the LLM's own parser reads it; the parser is not shown the reasoning around it."""
        parser, parts = self._llm.output_parser, parts_of(response.text or "")
        is_whole = response.refusal is None and response.finish not in _CUT and not parts.unfinished
        if parser is None or not is_whole:
            return response
        chars = response.reasoning_chars + parts.reasoning_chars
        aloud = response.aloud or parts.reasoning_chars > 0
        return replace(response, text=str(parser.parse(parts.answer)), reasoning_chars=chars, aloud=aloud)

    def frame(self) -> str:
        """Return the text around every prompt, for counting its tokens; the LLM's `system_prompt` is not included."""
        wrapper = self._llm.query_wrapper_prompt
        wrapped = wrapper.format(query_str="") if wrapper is not None and not self._chats else ""
        return "\n".join([*(f"{m.role.value}: {m.content}" for m in self._prefix), wrapped])

    def _messages(self, prompt: str) -> list[ChatMessage]:
        system = self._llm.system_prompt
        first = [ChatMessage(role=MessageRole.SYSTEM, content=system)] if system else []
        messages = as_messages(prompt, self._prefix)
        if self._llm.output_parser is not None:
            messages = self._llm.output_parser.format_messages(messages)
        return [*first, *messages]

    def _text(self, prompt: str) -> str:
        """Return the text that `predict` sends to completion models: conversation, template, system prompt, wrapper."""
        if self._prefix or isinstance(prompt, MessageText):
            text = self._as_conversation(as_messages(prompt, self._prefix))
        else:
            text = self._llm.completion_to_prompt(prompt) if self._llm.completion_to_prompt else prompt
        if self._llm.output_parser is not None:
            text = self._llm.output_parser.format(text)
        if self._llm.system_prompt:
            text = f"{self._llm.system_prompt}\n\n{text}"
        wrapper = self._llm.query_wrapper_prompt
        return wrapper.format(query_str=text) if wrapper is not None else text

    def _as_conversation(self, messages: Sequence[ChatMessage]) -> str:
        format_messages: Callable[[Sequence[ChatMessage]], str] | None = self._llm.messages_to_prompt
        try:
            return format_messages(messages) if format_messages else generic_messages_to_prompt(messages)
        except ValueError:  # a local tokenizer without a chat template
            return generic_messages_to_prompt(messages)


class FoundAnswer(BaseModel):
    """What the text says in reply to the question."""

    model_config = ConfigDict(strict=True)

    answer: str = Field(description=SCHEMA["properties"]["answer"]["description"])
    found: bool = Field(description=SCHEMA["properties"]["found"]["description"])


class StructuredCalls:
    """Takes a text and returns one JSON object of a pydantic class.

    Conversation and prompt go in as values of a template that consists of nothing else, so that nothing in them is
    read as a template.
    """

    def __init__(
        self,
        llm: LLM,
        output_cls: type[BaseModel],
        prefix: Sequence[ChatMessage],
        kwargs: Mapping[str, Any],
    ) -> None:
        self._llm = llm
        self._output_cls = output_cls
        self._kwargs = dict(kwargs)
        self._prefix = tuple(prefix)
        self.blocks = PlainCalls(llm, (), kwargs).blocks

    def ask(self, prompt: str) -> str:
        """Return the object as JSON."""
        template = self._template(prompt)
        with asked(prompt):
            return _json(self._llm.structured_predict(self._output_cls, template, llm_kwargs=self._kwargs))

    async def aask(self, prompt: str) -> str:
        """Do as `ask`, in an event loop."""
        template = self._template(prompt)
        with asked(prompt):
            return _json(await self._llm.astructured_predict(self._output_cls, template, llm_kwargs=self._kwargs))

    def _template(self, prompt: str) -> ChatPromptTemplate:
        said = as_messages(prompt, self._prefix)
        values: dict[str, Any] = {f"message_{i}": str(m.content or "") for i, m in enumerate(said)}
        messages = [ChatMessage(role=m.role, content=f"{{message_{i}}}") for i, m in enumerate(said)]
        return ChatPromptTemplate(messages, **values)


def _json(found: object) -> str:
    if not isinstance(found, BaseModel):
        raise TypeError(f"the LLM gave no structured output but {type(found).__name__}: {found!r:.80}")
    return found.model_dump_json()
