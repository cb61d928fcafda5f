"""One prompt to a LlamaIndex LLM: sync, async, and either of them streaming.

The calls are `chat` and `complete`, never `predict`, which takes every keyword argument for a template variable. The
LLM's own decorators emit its events, spans and callbacks and honour its rate limiter.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from typing import Any

from llama_index.core.base.llms.generic_utils import messages_to_prompt as generic_messages_to_prompt
from llama_index.core.base.llms.types import ChatMessage, MessageRole
from llama_index.core.bridge.pydantic import BaseModel
from llama_index.core.llms import LLM, CustomLLM
from llama_index.core.llms.structured_llm import StructuredLLM
from llama_index.core.prompts import ChatPromptTemplate

from llamaindex_robustrag.message_text import MessageText, as_messages


def plain_llm(llm: LLM) -> LLM:
    """The LLM inside structured ones."""
    while isinstance(llm, StructuredLLM):
        llm = llm.llm
    return llm


def blocks_the_loop(llm: LLM, method: str) -> bool:
    """Whether the LLM's asynchronous method is `CustomLLM`'s, which calls the synchronous one on the event loop."""
    return next((c for c in type(llm).__mro__ if method in c.__dict__), None) is CustomLLM


class PlainCalls:
    """Text in, text out.

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
    def blocks(self) -> bool:
        """Whether the asynchronous calls would block the event loop."""
        return blocks_the_loop(self._llm, "achat" if self._chats else "acomplete")

    @property
    def blocks_streaming(self) -> bool:
        """Whether asynchronous streaming would block the event loop."""
        return blocks_the_loop(self._llm, "astream_chat" if self._chats else "astream_complete")

    def ask(self, prompt: str) -> str:
        """The answer to a prompt."""
        if self._chats:
            return self._llm.chat(self._messages(prompt), **self._kwargs).message.content or ""
        return self._llm.complete(self._text(prompt), formatted=True, **self._kwargs).text

    async def aask(self, prompt: str) -> str:
        """The answer to a prompt."""
        if self._chats:
            return (await self._llm.achat(self._messages(prompt), **self._kwargs)).message.content or ""
        return (await self._llm.acomplete(self._text(prompt), formatted=True, **self._kwargs)).text

    def stream(self, prompt: str) -> Iterator[str]:
        """The answer in pieces."""
        if self._chats:
            for part in self._llm.stream_chat(self._messages(prompt), **self._kwargs):
                yield part.delta or ""
        else:
            for piece in self._llm.stream_complete(self._text(prompt), formatted=True, **self._kwargs):
                yield piece.delta or ""

    async def astream(self, prompt: str) -> AsyncIterator[str]:
        """The answer in pieces; not for LLMs that would block the event loop."""
        if self._chats:
            async for part in await self._llm.astream_chat(self._messages(prompt), **self._kwargs):
                yield part.delta or ""
        else:
            async for piece in await self._llm.astream_complete(self._text(prompt), formatted=True, **self._kwargs):
                yield piece.delta or ""

    def frame(self) -> str:
        """The text around every prompt, for counting its tokens; the LLM's `system_prompt` not included."""
        wrapper = self._llm.query_wrapper_prompt
        wrapped = wrapper.format(query_str="") if wrapper is not None and not self._chats else ""
        return "\n".join([*(f"{m.role.value}: {m.content}" for m in self._prefix), wrapped])

    def _messages(self, prompt: str) -> list[ChatMessage]:
        system = self._llm.system_prompt
        first = [ChatMessage(role=MessageRole.SYSTEM, content=system)] if system else []
        return [*first, *as_messages(prompt, self._prefix)]

    def _text(self, prompt: str) -> str:
        """The prompt as completion models get it from `predict`: conversation, template, system prompt, wrapper."""
        if self._prefix or isinstance(prompt, MessageText):
            text = self._as_conversation(as_messages(prompt, self._prefix))
        else:
            text = self._llm.completion_to_prompt(prompt) if self._llm.completion_to_prompt else prompt
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


class StructuredCalls:
    """Text in, one JSON object of a pydantic class out.

    Conversation and prompt go in as values of a template that consists of nothing else, so that nothing in them is
    read as a template.
    """

    def __init__(
        self, llm: LLM, output_cls: type[BaseModel], prefix: Sequence[ChatMessage], kwargs: Mapping[str, Any]
    ) -> None:
        self._llm = llm
        self._output_cls = output_cls
        self._kwargs = dict(kwargs)
        self._prefix = tuple(prefix)

    @property
    def blocks(self) -> bool:
        """Whether the asynchronous call would block the event loop."""
        return blocks_the_loop(self._llm, "achat" if self._llm.metadata.is_chat_model else "acomplete")

    def ask(self, prompt: str) -> str:
        """The object as JSON."""
        return _json(self._llm.structured_predict(self._output_cls, self._template(prompt), llm_kwargs=self._kwargs))

    async def aask(self, prompt: str) -> str:
        """The object as JSON."""
        found = await self._llm.astructured_predict(self._output_cls, self._template(prompt), llm_kwargs=self._kwargs)
        return _json(found)

    def _template(self, prompt: str) -> ChatPromptTemplate:
        said = as_messages(prompt, self._prefix)
        values: dict[str, Any] = {f"message_{i}": str(m.content or "") for i, m in enumerate(said)}
        messages = [ChatMessage(role=m.role, content=f"{{message_{i}}}") for i, m in enumerate(said)]
        return ChatPromptTemplate(messages, **values)


def _json(found: object) -> str:
    if not isinstance(found, BaseModel):
        raise TypeError(f"the LLM gave no structured output but {type(found).__name__}: {found!r:.80}")
    return found.model_dump_json()
