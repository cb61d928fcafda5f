"""A LlamaIndex LLM as a model of the core.

The calls are `chat` and `complete`, never `predict`, which takes every keyword argument for a template variable. The
LLM's own decorators emit its events, spans and callbacks and honour its rate limiter.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from concurrent import futures
from dataclasses import dataclass, field, fields, replace
from typing import Any

from llama_index.core.base.llms.generic_utils import messages_to_prompt as generic_messages_to_prompt
from llama_index.core.base.llms.types import ChatMessage, ChatResponse, CompletionResponse, MessageRole
from llama_index.core.bridge.pydantic import BaseModel
from llama_index.core.indices.prompt_helper import PromptHelper
from llama_index.core.llms import LLM
from llama_index.core.prompts import ChatPromptTemplate

from llamaindex_robustrag.audit import asked
from llamaindex_robustrag.llm_traits import blocks_the_loop, llm_repeats
from llamaindex_robustrag.local import TextModelLLM
from llamaindex_robustrag.prompt_text import Fitter, MessageText, as_messages
from llamaindex_robustrag.replies import Streamed, response_of
from robustrag_integrations._util.checks import check_at_least, check_flag
from robustrag_integrations.answers.determinism import Repeats
from robustrag_integrations.errors import INTERRUPTS
from robustrag_integrations.models.base import Response, Role, Scores, Until
from robustrag_integrations.models.callable import Call, CalledModel
from robustrag_integrations.models.caller import TRANSIENT, CallLimits, ModelCaller, checked_timeout, is_busy
from robustrag_integrations.prompts import Prompt
from robustrag_integrations.replies.reply import Piece


@dataclass(frozen=True)
class CallOptions:
    """How a synthesizer calls its LLM.

    Attributes:
        num_workers: isolated calls under way at a time, over all questions that are being answered.
        timeout: seconds for one try, None for no limit; waiting for the LLM's rate limiter counts.
        attempts: tries in all.
        retry_on: exceptions worth another try, besides those of a server that is busy (429, or 500 and above) where
            the LLM's client does not try again by itself.
        llm_kwargs: passed on with every call, such as `{"temperature": 0.0}`.
        accept_sampling: you know that the model may answer otherwise another time: no warning repeats it, while
            `determinism` in the report still says what holds.
    """

    num_workers: int = 8
    timeout: float | None = None
    attempts: int = 3
    retry_on: tuple[type[Exception], ...] = TRANSIENT
    llm_kwargs: Mapping[str, Any] = field(default_factory=dict)
    accept_sampling: bool = False

    def __post_init__(self) -> None:
        check_at_least(1, num_workers=self.num_workers, attempts=self.attempts)
        check_flag(accept_sampling=self.accept_sampling)
        if not isinstance(self.llm_kwargs, Mapping):
            raise TypeError(f"llm_kwargs must be a mapping such as {{'temperature': 0.0}}, got {self.llm_kwargs!r:.60}")
        object.__setattr__(self, "timeout", checked_timeout(self.timeout))
        listed: Any = self.retry_on if isinstance(self.retry_on, Sequence) else (self.retry_on,)
        if not all(isinstance(kind, type) and issubclass(kind, BaseException) for kind in listed):
            raise TypeError(f"retry_on={self.retry_on!r:.60} must hold classes of exceptions, such as ConnectionError")
        object.__setattr__(self, "retry_on", tuple(listed))
        object.__setattr__(self, "limits", CallLimits(self.num_workers, self.timeout))

    def __reduce__(self) -> Any:
        """Reset the counts: a copy, also in another process, counts its own calls."""
        return CallOptions, tuple(getattr(self, each.name) for each in fields(self) if each.init)

    limits: CallLimits = field(init=False, repr=False, compare=False)

    def caller_of(self, llm: LLM) -> ModelCaller:
        """Return what makes an LLM's calls, with the core's threads, tasks, retries and time-outs."""
        retries = getattr(llm, "max_retries", 0) != 0  # the LLM's client retries by itself
        return ModelCaller(
            self.limits,
            self.attempts,
            lambda error: isinstance(error, self.retry_on) or (not retries and is_busy(error)),
        )


class LLMModel(CalledModel):
    """A LlamaIndex LLM as a model of the core.

    Args:
        llm: any LLM that is not a structured one.
        options: limits, retries and arguments of its calls.
        helper: the window's size and tokenizer.
        conversation: messages in front of every prompt.
        output_cls: the class of its replies, which are its JSON then, in one piece; None for text.
    """

    def __init__(
        self,
        llm: LLM,
        options: CallOptions,
        helper: PromptHelper,
        conversation: Sequence[ChatMessage] = (),
        output_cls: type[BaseModel] | None = None,
    ) -> None:
        self._llm, self._conversation, self._output_cls = llm, tuple(conversation), output_cls
        self._kwargs = dict(options.llm_kwargs)
        self._chats = llm.metadata.is_chat_model
        streams = output_cls is None
        blocks = blocks_the_loop(llm, "achat" if self._chats else "acomplete")
        stream_blocks = blocks_the_loop(llm, "astream_chat" if self._chats else "astream_complete")
        super().__init__(
            options.caller_of(llm),
            llm.metadata.model_name,
            self._ask,
            None if blocks else self._aask,
            stream=self._streamed if streams else None,
            astream=self._astreamed if streams and not stream_blocks else None,
            clients=(llm,),
        )
        self._fitter = Fitter(helper, llm, self._frame())

    @property
    def repeats(self) -> Repeats:
        """The model's reproducibility, by its settings."""
        return llm_repeats(self._llm, self._kwargs)

    def generate(self, prompts: Sequence[Prompt], role: Role, until: Until | None = None) -> list[Response]:
        """Ask all prompts at once, each cut to the window by itself, in threads that keep spans and contexts."""
        fitted = self._fitted(prompts)
        return _marked(super().generate([prompt for prompt, _ in fitted], role, until), fitted)

    async def agenerate(self, prompts: Sequence[Prompt], role: Role, until: Until | None = None) -> list[Response]:
        """`generate` without blocking the event loop; calls that are not waited for are cancelled."""
        fitted = await asyncio.to_thread(self._fitted, prompts)
        return _marked(await super().agenerate([prompt for prompt, _ in fitted], role, until), fitted)

    generate_until, agenerate_until = generate, agenerate

    @property
    def can_score(self) -> bool:
        """True for a model of the core that can."""
        return isinstance(self._llm, TextModelLLM) and self._llm.model.can_score

    def score(self, prompts: Sequence[Prompt], texts: Sequence[str]) -> list[Scores | None]:
        """Tell how likely the core's model finds each text as the reply to each prompt."""
        model: Any = self._llm
        return list(model.model.score([Prompt(self._text(prompt.text)) for prompt, _ in self._fitted(prompts)], texts))

    def _failure(self, error: BaseException) -> Exception:
        if steers(error):
            raise error
        return super()._failure(error)

    def _ask(self, call: Call) -> Response:
        prompt = call.prompt.text
        with asked(prompt):
            if self._output_cls is not None:
                template = self._template(prompt)
                return _as_json(self._llm.structured_predict(self._output_cls, template, llm_kwargs=self._kwargs))
            if self._chats:
                return response_of(self._llm.chat(self._messages(prompt), **self._kwargs))
            return response_of(self._llm.complete(self._text(prompt), formatted=True, **self._kwargs))

    async def _aask(self, call: Call) -> Response:
        prompt = call.prompt.text
        with asked(prompt):
            if self._output_cls is not None:
                template = self._template(prompt)
                made = self._llm.astructured_predict(self._output_cls, template, llm_kwargs=self._kwargs)
                return _as_json(await made)
            if self._chats:
                return response_of(await self._llm.achat(self._messages(prompt), **self._kwargs))
            return response_of(await self._llm.acomplete(self._text(prompt), formatted=True, **self._kwargs))

    def _streamed(self, call: Call) -> Iterator[Piece]:
        prompt, streamed = call.prompt.text, Streamed()
        parts: Iterator[ChatResponse | CompletionResponse]
        with asked(prompt):
            if self._chats:
                parts = self._llm.stream_chat(self._messages(prompt), **self._kwargs)
            else:
                parts = self._llm.stream_complete(self._text(prompt), formatted=True, **self._kwargs)
        for part in parts:
            yield streamed.piece_of(part)
        yield streamed.ending

    async def _astreamed(self, call: Call) -> AsyncIterator[Piece]:
        prompt, streamed = call.prompt.text, Streamed()
        parts: AsyncIterator[ChatResponse | CompletionResponse]
        with asked(prompt):
            if self._chats:
                parts = await self._llm.astream_chat(self._messages(prompt), **self._kwargs)
            else:
                parts = await self._llm.astream_complete(self._text(prompt), formatted=True, **self._kwargs)
        async for part in parts:
            yield streamed.piece_of(part)
        yield streamed.ending

    def _fitted(self, prompts: Sequence[Prompt]) -> list[tuple[Prompt, bool]]:
        return [self._fitter.fit(prompt) for prompt in prompts]

    def _frame(self) -> str:
        """Return the text around every prompt, for counting its tokens; the LLM's `system_prompt` is not included."""
        wrapper = self._llm.query_wrapper_prompt
        wrapped = wrapper.format(query_str="") if wrapper is not None and not self._chats else ""
        return "\n".join([*(f"{m.role.value}: {m.content}" for m in self._conversation), wrapped])

    def _messages(self, prompt: str) -> list[ChatMessage]:
        system = self._llm.system_prompt
        first = [ChatMessage(role=MessageRole.SYSTEM, content=system)] if system else []
        return [*first, *as_messages(prompt, self._conversation)]

    def _text(self, prompt: str) -> str:
        """Return the text that `predict` sends to completion models: conversation, template, system prompt, wrapper."""
        if self._conversation or isinstance(prompt, MessageText):
            text = self._as_conversation(as_messages(prompt, self._conversation))
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

    def _template(self, prompt: str) -> ChatPromptTemplate:
        """Return a template of nothing but values, so that nothing in prompt and conversation is read as a template."""
        said = as_messages(prompt, self._conversation)
        values: dict[str, Any] = {f"message_{i}": str(m.content or "") for i, m in enumerate(said)}
        messages = [ChatMessage(role=m.role, content=f"{{message_{i}}}") for i, m in enumerate(said)]
        return ChatPromptTemplate(messages, **values)


def steers(error: BaseException) -> bool:
    """True if an exception is no failure: a cancellation, one of the audit, or a workflow's step that waits."""
    results = sys.modules.get("workflows.runtime.types.results")  # since workflows 2.9
    waiting = getattr(results, "WaitingForEvent", None)
    return isinstance(error, (*INTERRUPTS, futures.CancelledError, *([waiting] if waiting else [])))


def _marked(responses: Sequence[Response], fitted: Sequence[tuple[Prompt, bool]]) -> list[Response]:
    return [
        replace(r, truncated=cut and r.skipped_reason is None) for r, (_, cut) in zip(responses, fitted, strict=True)
    ]


def _as_json(found: object) -> Response:
    if not isinstance(found, BaseModel):
        raise TypeError(f"the LLM gave no structured output but {type(found).__name__}: {found!r:.80}")
    return Response(found.model_dump_json())
