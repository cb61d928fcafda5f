"""Calls a LlamaIndex LLM with one prompt: sync or async, streamed or not.

The calls are `chat` and `complete`, never `predict`, which takes every keyword argument for a template variable. The
LLM's own decorators emit its events, spans and callbacks and honour its rate limiter.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from concurrent import futures
from typing import Any

from llama_index.core.base.llms.generic_utils import messages_to_prompt as generic_messages_to_prompt
from llama_index.core.base.llms.types import ChatMessage, ChatResponse, CompletionResponse, MessageRole
from llama_index.core.bridge.pydantic import BaseModel
from llama_index.core.llms import LLM, CustomLLM
from llama_index.core.llms.structured_llm import StructuredLLM
from llama_index.core.prompts import ChatPromptTemplate

from llamaindex_robustrag.audit import asked
from llamaindex_robustrag.caveats import llm_repeats
from llamaindex_robustrag.local import TextModelLLM
from llamaindex_robustrag.message_text import MessageText, as_messages
from llamaindex_robustrag.replies import Streamed, response_of
from robustrag_integrations._util.redaction import in_one_line, secrets_of
from robustrag_integrations.answers.determinism import Repeats
from robustrag_integrations.errors import INTERRUPTS
from robustrag_integrations.models.base import BLANK, Response, Scores, TextModel
from robustrag_integrations.models.callable import CalledModel
from robustrag_integrations.models.caller import ModelCaller
from robustrag_integrations.prompts import Prompt
from robustrag_integrations.replies.reply import Piece, without_secrets


def plain_llm(llm: LLM) -> LLM:
    """Return the LLM inside structured ones."""
    while isinstance(llm, StructuredLLM):
        llm = llm.llm
    return llm


def blocks_the_loop(llm: LLM, method: str) -> bool:
    """True if the LLM's asynchronous method is `CustomLLM`'s, which calls the synchronous one on the event loop."""
    return next((c for c in type(llm).__mro__ if method in c.__dict__), None) is CustomLLM


def steers(error: BaseException) -> bool:
    """True if an exception is no failure: a cancellation, one of the audit, or a workflow's step that waits."""
    results = sys.modules.get("workflows.runtime.types.results")  # since workflows 2.9
    waiting = getattr(results, "WaitingForEvent", None)
    return isinstance(error, (*INTERRUPTS, futures.CancelledError, *([waiting] if waiting else [])))


class LLMCalls:
    """Calls of one LLM: `ask` and `aask` take a prompt and return a reply, and know nothing of other prompts.

    Args:
        llm: any LLM that is not a structured one.
        prefix: messages in front of every prompt: a conversation so far.
        kwargs: passed on with every call, such as `{"temperature": 0.0}`.
        caller: its limits and retries.
    """

    def __init__(self, llm: LLM, prefix: Sequence[ChatMessage], kwargs: Mapping[str, Any], caller: ModelCaller) -> None:
        self._llm = llm
        self._prefix = tuple(prefix)
        self._kwargs = dict(kwargs)
        self._chats = llm.metadata.is_chat_model
        self._blocks = blocks_the_loop(llm, "achat" if self._chats else "acomplete")
        self.caller = caller

    def ask(self, prompt: Prompt) -> Response:
        """Return the reply to a prompt."""
        raise NotImplementedError

    async def aask(self, prompt: Prompt) -> Response:
        """`ask` in an event loop."""
        raise NotImplementedError

    def in_words(self, error: BaseException) -> str:
        """Return an error's message, without the LLM's keys. Raise what is no failure."""
        if steers(error):
            raise error
        return in_one_line(error, secrets_of(self._llm))

    def streamed(self) -> CalledModel:
        """Return a model that streams replies, in one piece where the LLM has no stream of its own."""
        return CalledModel(
            self.caller,
            self._llm.metadata.model_name,
            lambda text: self.ask(Prompt(text)),
            None if self._blocks else lambda text: self.aask(Prompt(text)),
            clients=(self._llm,),
        )


class PlainCalls(LLMCalls):
    """Calls that give text."""

    @property
    def repeats(self) -> Repeats:
        """The model's reproducibility, by its settings."""
        return llm_repeats(self._llm, self._kwargs)

    def ask(self, prompt: Prompt) -> Response:
        """Return the reply to a prompt."""
        if prompt.blank:
            return BLANK
        with asked(prompt.text):
            if self._chats:
                response = response_of(self._llm.chat(self._messages(prompt.text), **self._kwargs))
            else:
                response = response_of(self._llm.complete(self._text(prompt.text), formatted=True, **self._kwargs))
        return without_secrets(response, self._llm)

    async def aask(self, prompt: Prompt) -> Response:
        """`ask` in an event loop; in a thread where the LLM's own asynchronous calls would block it."""
        if self._blocks or prompt.blank:
            return await self.caller.limits.arun(self.ask, prompt)
        with asked(prompt.text):
            if self._chats:
                response = response_of(await self._llm.achat(self._messages(prompt.text), **self._kwargs))
            else:
                text = self._text(prompt.text)
                response = response_of(await self._llm.acomplete(text, formatted=True, **self._kwargs))
        return without_secrets(response, self._llm)

    def score(self, prompts: Sequence[Prompt], texts: Sequence[str]) -> list[Scores | None] | None:
        """Return how likely a core model finds each text as the reply to each prompt; None for other LLMs."""
        model = self._scorer
        return None if model is None else model.score(self._texts(prompts), texts)

    async def ascore(self, prompts: Sequence[Prompt], texts: Sequence[str]) -> list[Scores | None] | None:
        """`score` in an event loop."""
        model = self._scorer
        return None if model is None else await model.ascore(self._texts(prompts), texts)

    @property
    def _scorer(self) -> TextModel | None:
        model = self._llm.model if isinstance(self._llm, TextModelLLM) else None
        return model if model is not None and model.can_score else None

    def _texts(self, prompts: Sequence[Prompt]) -> list[Prompt]:
        return [Prompt(self._text(prompt.text)) for prompt in prompts]

    def streamed(self) -> CalledModel:
        """Return a model that streams replies."""
        blocks = blocks_the_loop(self._llm, "astream_chat" if self._chats else "astream_complete")
        return CalledModel(
            self.caller,
            self._llm.metadata.model_name,
            lambda text: self.ask(Prompt(text)),
            stream=self._stream,
            astream=None if blocks else self._astream,
            clients=(self._llm,),
        )

    def _stream(self, prompt: str) -> Iterator[Piece]:
        streamed = Streamed()
        parts: Iterator[ChatResponse | CompletionResponse]
        with asked(prompt):
            if self._chats:
                parts = self._llm.stream_chat(self._messages(prompt), **self._kwargs)
            else:
                parts = self._llm.stream_complete(self._text(prompt), formatted=True, **self._kwargs)
        for part in parts:
            yield streamed.piece_of(part)
        yield streamed.ending

    async def _astream(self, prompt: str) -> AsyncIterator[Piece]:
        streamed = Streamed()
        parts: AsyncIterator[ChatResponse | CompletionResponse]
        with asked(prompt):
            if self._chats:
                parts = await self._llm.astream_chat(self._messages(prompt), **self._kwargs)
            else:
                parts = await self._llm.astream_complete(self._text(prompt), formatted=True, **self._kwargs)
        async for part in parts:
            yield streamed.piece_of(part)
        yield streamed.ending

    def frame(self) -> str:
        """Return the text around every prompt, for counting its tokens; the LLM's `system_prompt` is not included."""
        wrapper = self._llm.query_wrapper_prompt
        wrapped = wrapper.format(query_str="") if wrapper is not None and not self._chats else ""
        return "\n".join([*(f"{m.role.value}: {m.content}" for m in self._prefix), wrapped])

    def _messages(self, prompt: str) -> list[ChatMessage]:
        system = self._llm.system_prompt
        first = [ChatMessage(role=MessageRole.SYSTEM, content=system)] if system else []
        return [*first, *as_messages(prompt, self._prefix)]

    def _text(self, prompt: str) -> str:
        """Return the text that `predict` sends to completion models: conversation, template, system prompt, wrapper."""
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


class StructuredCalls(LLMCalls):
    """Calls that give one JSON object of a pydantic class.

    Conversation and prompt go in as values of a template that consists of nothing else, so that nothing in them is
    read as a template.
    """

    output_cls: type[BaseModel]

    @classmethod
    def of(cls, output_cls: type[BaseModel], *arguments: Any) -> StructuredCalls:
        """Create calls for a class, with the arguments of `LLMCalls`."""
        made = cls(*arguments)
        made.output_cls = output_cls
        return made

    def ask(self, prompt: Prompt) -> Response:
        """Return the object as JSON."""
        if prompt.blank:
            return BLANK
        template = self._template(prompt.text)
        with asked(prompt.text):
            found = self._llm.structured_predict(self.output_cls, template, llm_kwargs=self._kwargs)
        return without_secrets(Response(_json(found)), self._llm)

    async def aask(self, prompt: Prompt) -> Response:
        """`ask` in an event loop; in a thread where the LLM's own asynchronous calls would block it."""
        if self._blocks or prompt.blank:
            return await self.caller.limits.arun(self.ask, prompt)
        template = self._template(prompt.text)
        with asked(prompt.text):
            found = await self._llm.astructured_predict(self.output_cls, template, llm_kwargs=self._kwargs)
        return without_secrets(Response(_json(found)), self._llm)

    def _template(self, prompt: str) -> ChatPromptTemplate:
        said = as_messages(prompt, self._prefix)
        values: dict[str, Any] = {f"message_{i}": str(m.content or "") for i, m in enumerate(said)}
        messages = [ChatMessage(role=m.role, content=f"{{message_{i}}}") for i, m in enumerate(said)]
        return ChatPromptTemplate(messages, **values)


def _json(found: object) -> str:
    if not isinstance(found, BaseModel):
        raise TypeError(f"the LLM gave no structured output but {type(found).__name__}: {found!r:.80}")
    return found.model_dump_json()
