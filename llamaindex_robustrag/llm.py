"""A LlamaIndex LLM as a model of the core.

The calls are `chat` and `complete`, never `predict`, which takes every keyword argument for a template variable. The
LLM's own decorators emit its events, spans and callbacks and honour its rate limiter.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from llama_index.core.base.llms.generic_utils import messages_to_prompt as generic_messages_to_prompt
from llama_index.core.base.llms.types import ChatMessage, MessageRole
from llama_index.core.bridge.pydantic import BaseModel
from llama_index.core.indices.prompt_helper import PromptHelper
from llama_index.core.llms import LLM, CustomLLM
from llama_index.core.prompts import ChatPromptTemplate

from llamaindex_robustrag.audit import announced
from llamaindex_robustrag.local import TextModelLLM
from llamaindex_robustrag.prompts import Fitter, MessageText, as_messages
from llamaindex_robustrag.replies import Streamed, response_of
from robustrag_integrations._util.checks import check_at_least, check_flag
from robustrag_integrations.answers.determinism import Repeats, checked_samples
from robustrag_integrations.models.base import Response, limit_among
from robustrag_integrations.models.callable import Call, CalledModel
from robustrag_integrations.models.caller import TRANSIENT, CallLimits, checked_timeout, is_busy
from robustrag_integrations.models.reply import Piece


@dataclass(frozen=True)
class CallOptions:
    """How a synthesizer calls its LLM.

    Attributes:
        num_workers: isolated calls under way at a time, over all questions that are being answered.
        timeout: seconds for one try, None for no limit; waiting for the LLM's rate limiter counts.
        attempts: tries in all, after ConnectionError and TimeoutError, and after errors of a busy server (429, or 500
            and above) where the LLM's client does not try again by itself.
        samples: False declares that equal prompts get equal replies, of which a server like that of an `OpenAILike`
            tells nothing: a radius then holds in every run. True: that they differ. None: as the LLM's settings say.
        accept_sampling: you know that the model may answer otherwise another time: no warning repeats it, while
            `determinism` in the report still says what holds.
    """

    num_workers: int = 8
    timeout: float | None = None
    attempts: int = 3
    samples: bool | None = None
    accept_sampling: bool = False

    def __post_init__(self) -> None:
        check_at_least(1, num_workers=self.num_workers, attempts=self.attempts)
        check_flag(accept_sampling=self.accept_sampling)
        checked_samples(self.samples)
        object.__setattr__(self, "timeout", checked_timeout(self.timeout))


class LLMModel(CalledModel):
    """A LlamaIndex LLM as a model of the core, with a conversation in front of every prompt.

    Its replies are text, or the JSON of `output_cls`, in one piece.
    """

    def __init__(
        self,
        llm: LLM,
        options: CallOptions,
        limits: CallLimits,
        helper: PromptHelper,
        conversation: Sequence[ChatMessage] = (),
        output_cls: type[BaseModel] | None = None,
    ) -> None:
        self._llm, self._conversation, self._output_cls = llm, tuple(conversation), output_cls
        self._samples, self._chats = options.samples, llm.metadata.is_chat_model
        kind = "chat" if self._chats else "complete"
        client_retries = getattr(llm, "max_retries", 0) != 0
        super().__init__(
            limits,
            llm.metadata.model_name,
            self._ask,
            None if blocks_the_loop(llm, f"a{kind}") else self._aask,
            stream=self._streamed if output_cls is None else None,
            astream=self._astreamed if output_cls is None and not blocks_the_loop(llm, f"astream_{kind}") else None,
            clients=(llm,),
            attempts=options.attempts,
            worth_retrying=lambda e: isinstance(e, TRANSIENT) or (not client_retries and is_busy(e)),
        )
        around = "\n".join(f"{m.role.value}: {m.content}" for m in conversation)
        if llm.query_wrapper_prompt is not None and not self._chats:
            around += llm.query_wrapper_prompt.format(query_str="")
        self._fitter = Fitter(helper, llm, around)
        self.limit = llm.model.limit if isinstance(llm, TextModelLLM) else limit_among(type(llm).model_fields)

    @property
    def repeats(self) -> Repeats:
        """The model's reproducibility, as it is declared, else by its settings."""
        llm = self._llm
        if self._samples is not None:
            return Repeats.declared(self._samples)
        if isinstance(llm, TextModelLLM):
            return llm.model.repeats
        if (given := getattr(llm, "generate_kwargs", None)) is not None:  # transformers, which have a default of theirs
            config = getattr(getattr(llm, "_model", None), "generation_config", None)
            draws = given.get("do_sample", getattr(config, "do_sample", False))
            return Repeats("samples", 'do_sample; pass generate_kwargs={"do_sample": False}') if draws else Repeats()
        extra = getattr(llm, "additional_kwargs", None) or {}
        temperatures = (extra.get("temperature"), getattr(llm, "temperature", None))
        temperature = next((value for value in temperatures if isinstance(value, (int, float))), None)
        if temperature:
            advice = "" if temperature == 1 else "; set temperature=0"  # reasoning models are fixed to 1
            return Repeats("samples", f"temperature {temperature:g}{advice}")
        if temperature is None and "temperature" in type(llm).model_fields:
            return Repeats("samples", "no temperature is set, and most servers then sample")
        return Repeats()

    def _ask(self, call: Call) -> Response:
        prompt, cut = self._fitter.fitted(call.prompt)
        with announced(prompt.text):
            return self._read(self._begin("", prompt.text), cut)

    async def _aask(self, call: Call) -> Response:
        prompt, cut = await asyncio.to_thread(self._fitter.fitted, call.prompt)
        with announced(prompt.text):
            return self._read(await self._begin("a", prompt.text), cut)

    def _streamed(self, call: Call) -> Iterator[Piece]:
        prompt, cut = self._fitter.fitted(call.prompt)
        with announced(prompt.text):
            parts = self._begin("stream_", prompt.text)
        streamed = Streamed()
        for part in parts:
            yield streamed.piece_of(part)
        yield Response.of("", streamed.ending, truncated=cut)

    async def _astreamed(self, call: Call) -> AsyncIterator[Piece]:
        prompt, cut = await asyncio.to_thread(self._fitter.fitted, call.prompt)
        with announced(prompt.text):
            parts = await self._begin("astream_", prompt.text)
        streamed = Streamed()
        async for part in parts:
            yield streamed.piece_of(part)
        yield Response.of("", streamed.ending, truncated=cut)

    def _begin(self, way: str, prompt: str) -> Any:
        if self._output_cls is not None:
            return getattr(self._llm, f"{way}structured_predict")(self._output_cls, self._template(prompt))
        if self._chats:
            return getattr(self._llm, f"{way}chat")(self._messages(prompt))
        return getattr(self._llm, f"{way}complete")(self._text(prompt), formatted=True)

    def _read(self, said: Any, cut: bool) -> Response:
        if self._output_cls is None:
            return response_of(said, truncated=cut)
        if not isinstance(said, BaseModel):
            raise TypeError(f"the LLM gave no structured output but {type(said).__name__}: {said!r:.80}")
        return Response(said.model_dump_json(), truncated=cut)

    def _messages(self, prompt: str) -> list[ChatMessage]:
        system = self._llm.system_prompt
        first = [ChatMessage(role=MessageRole.SYSTEM, content=system)] if system else []
        return [*first, *as_messages(prompt, self._conversation)]

    def _text(self, prompt: str) -> str:
        """Return the text that `predict` sends to completion models: conversation, template, system prompt, wrapper."""
        text, llm = prompt, self._llm
        if self._conversation or isinstance(prompt, MessageText):
            messages = as_messages(prompt, self._conversation)
            try:
                text = llm.messages_to_prompt(messages)  # type: ignore[misc]
            except ValueError:  # a local tokenizer without a chat template
                text = generic_messages_to_prompt(messages)
        elif llm.completion_to_prompt:
            text = llm.completion_to_prompt(prompt)
        if llm.system_prompt:
            text = f"{llm.system_prompt}\n\n{text}"
        return text if llm.query_wrapper_prompt is None else llm.query_wrapper_prompt.format(query_str=text)

    def _template(self, prompt: str) -> ChatPromptTemplate:
        """Return a template of nothing but values, so that nothing in prompt and conversation is read as a template."""
        said = as_messages(prompt, self._conversation)
        values: dict[str, Any] = {f"message_{i}": str(m.content or "") for i, m in enumerate(said)}
        messages = [ChatMessage(role=m.role, content=f"{{message_{i}}}") for i, m in enumerate(said)]
        return ChatPromptTemplate(messages, **values)


def blocks_the_loop(llm: LLM, method: str) -> bool:
    """True if the LLM's asynchronous method is `CustomLLM`'s, which calls the synchronous one on the event loop."""
    return next((c for c in type(llm).__mro__ if method in c.__dict__), None) is CustomLLM
