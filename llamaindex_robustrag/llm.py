"""A LlamaIndex LLM as a model of the core.

The calls are `chat` and `complete`, never `predict`, which takes every keyword argument for a template variable. The
LLM's own decorators emit its events, spans and callbacks and honour its rate limiter.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Generator, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import Any, cast

from llama_index.core.base.llms.generic_utils import messages_to_prompt as generic_messages_to_prompt
from llama_index.core.base.llms.types import ChatMessage, MessageRole
from llama_index.core.bridge.pydantic import BaseModel
from llama_index.core.indices.prompt_helper import PromptHelper
from llama_index.core.llms import LLM, CustomLLM
from llama_index.core.prompts import ChatPromptTemplate

from llamaindex_robustrag.audit import asked
from llamaindex_robustrag.local import TextModelLLM
from llamaindex_robustrag.prompts import Fitter, MessageText, as_messages, with_context
from llamaindex_robustrag.replies import Streamed, response_of
from robustrag_integrations._util.checks import check_at_least, check_flag
from robustrag_integrations._util.steps import adriven, driven
from robustrag_integrations.answers.determinism import Repeats, checked_samples
from robustrag_integrations.models.base import Response, Role, Until, limit_among, not_asked
from robustrag_integrations.models.callable import Call, CalledModel
from robustrag_integrations.models.caller import TRANSIENT, CallLimits, checked_timeout, is_busy
from robustrag_integrations.models.reply import Ending, Piece
from robustrag_integrations.replies.reading import counted
from robustrag_integrations.text.abstention import is_abstention
from robustrag_integrations.text.prompts import Prompt

_BETWEEN = "\n\n"  # what two parts of one text say


@dataclass(frozen=True)
class CallOptions:
    """How a synthesizer calls its LLM.

    Attributes:
        num_workers: isolated calls under way at a time, over all questions that are being answered.
        timeout: seconds for one try, None for no limit; waiting for the LLM's rate limiter counts.
        attempts: tries in all.
        max_parts: calls for a source whose passages do not fit the LLM's window: each part is asked by itself, and one
            call more makes a single answer of what they say. What is beyond is not read, and a warning says so.
        retry_on: exceptions worth another try, besides those of a server that is busy (429, or 500 and above) where
            the LLM's client does not try again by itself.
        llm_kwargs: passed on with every call, such as `{"temperature": 0.0}`.
        samples: False declares that equal prompts get equal replies, of which a server like that of an `OpenAILike`
            tells nothing: a radius then holds in every run. True: that they differ. None: as the LLM's settings say.
        accept_sampling: you know that the model may answer otherwise another time: no warning repeats it, while
            `determinism` in the report still says what holds.
    """

    num_workers: int = 8
    timeout: float | None = None
    attempts: int = 3
    max_parts: int = 16
    retry_on: tuple[type[Exception], ...] = TRANSIENT
    llm_kwargs: Mapping[str, Any] = field(default_factory=dict)
    samples: bool | None = None
    accept_sampling: bool = False

    def __post_init__(self) -> None:
        check_at_least(1, num_workers=self.num_workers, attempts=self.attempts, max_parts=self.max_parts)
        check_flag(accept_sampling=self.accept_sampling)
        checked_samples(self.samples)
        object.__setattr__(self, "timeout", checked_timeout(self.timeout))
        object.__setattr__(self, "retry_on", tuple(self.retry_on))


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
        self._kwargs, self._chats = dict(options.llm_kwargs), llm.metadata.is_chat_model
        self._samples, self._max_parts = options.samples, options.max_parts
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
            worth_retrying=lambda e: isinstance(e, options.retry_on) or (not client_retries and is_busy(e)),
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
        temperatures = (self._kwargs.get("temperature"), extra.get("temperature"), getattr(llm, "temperature", None))
        temperature = next((value for value in temperatures if isinstance(value, (int, float))), None)
        if temperature:
            advice = "" if temperature == 1 else "; set temperature=0"  # reasoning models are fixed to 1
            return Repeats("samples", f"temperature {temperature:g}{advice}")
        if temperature is None and "temperature" in type(llm).model_fields:
            return Repeats("samples", "no temperature is set, and most servers then sample")
        return Repeats()

    def generate(self, prompts: Sequence[Prompt], role: Role, until: Until | None = None) -> list[Response]:
        """Ask all prompts at once, each fitted to the window by itself, in threads that keep spans and contexts."""
        ask = super().generate
        return driven(_read(self._parts(prompts, role), self._fitter, until), lambda step: ask(step[0], role, step[1]))

    async def agenerate(self, prompts: Sequence[Prompt], role: Role, until: Until | None = None) -> list[Response]:
        """`generate` without blocking the event loop; calls that are not waited for are cancelled."""
        ask, parts = super().agenerate, await asyncio.to_thread(self._parts, prompts, role)
        return await adriven(_read(parts, self._fitter, until), lambda step: ask(step[0], role, step[1]))

    def stream(self, prompt: Prompt, role: Role = "final") -> Iterator[Piece]:
        """Yield the answer in pieces; a prompt that does not fit the window is cut, and the last piece says so."""
        [fitting], cut = self._fitter.parts(prompt)
        for piece in super().stream(fitting, role):
            yield Response.of("", piece, truncated=cut) if isinstance(piece, Ending) else piece

    async def astream(self, prompt: Prompt, role: Role = "final") -> AsyncGenerator[Piece, None]:
        """`stream` without blocking the event loop."""
        [fitting], cut = await asyncio.to_thread(self._fitter.parts, prompt)
        async with aclosing(super().astream(fitting, role)) as pieces:
            async for piece in pieces:
                yield Response.of("", piece, truncated=cut) if isinstance(piece, Ending) else piece

    def _ask(self, call: Call) -> Response:
        with asked(call.prompt.text):
            return self._read(self._begin("", call.prompt.text))

    async def _aask(self, call: Call) -> Response:
        with asked(call.prompt.text):
            return self._read(await self._begin("a", call.prompt.text))

    def _streamed(self, call: Call) -> Iterator[Piece]:
        with asked(call.prompt.text):
            parts = self._begin("stream_", call.prompt.text)
        streamed = Streamed()
        for part in parts:
            yield streamed.piece_of(part)
        yield streamed.ending

    async def _astreamed(self, call: Call) -> AsyncIterator[Piece]:
        with asked(call.prompt.text):
            parts = await self._begin("astream_", call.prompt.text)
        streamed = Streamed()
        async for part in parts:
            yield streamed.piece_of(part)
        yield streamed.ending

    def _begin(self, way: str, prompt: str) -> Any:
        """Call one of the LLM's methods; `way` is the beginning of its name."""
        if self._output_cls is not None:
            predict = getattr(self._llm, f"{way}structured_predict")
            return predict(self._output_cls, self._template(prompt), llm_kwargs=self._kwargs)
        if self._chats:
            return getattr(self._llm, f"{way}chat")(self._messages(prompt), **self._kwargs)
        return getattr(self._llm, f"{way}complete")(self._text(prompt), formatted=True, **self._kwargs)

    def _read(self, said: Any) -> Response:
        if self._output_cls is None:
            return response_of(said)
        if not isinstance(said, BaseModel):
            raise TypeError(f"the LLM gave no structured output but {type(said).__name__}: {said!r:.80}")
        return Response(said.model_dump_json())

    def _parts(self, prompts: Sequence[Prompt], role: Role) -> list[tuple[list[Prompt], bool]]:
        """Return each prompt in its parts. Trusted passages are one: only who has read all is silent about them all."""
        most = 1 if role == "trusted" else self._max_parts
        return [self._fitter.parts(prompt, most) for prompt in prompts]

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


def _read(
    parts: Sequence[tuple[list[Prompt], bool]], fitter: Fitter, until: Until | None
) -> Generator[tuple[list[Prompt], Until | None], list[Response], list[Response]]:
    """Ask prompts in their parts, and where these say different things, once more with what they say; one reply each.

    A reply is made of those to one prompt's own parts alone.
    """
    ends = list(accumulate(len(own) for own, _ in parts))

    def so_far(replies: Sequence[Response]) -> list[Response | list[Response]]:
        return [_of_parts(replies[end - len(own) : end], cut) for end, (own, cut) in zip(ends, parts, strict=True)]

    def is_enough(replies: Sequence[Response]) -> bool:
        return until is not None and until([not_asked() if isinstance(r, list) else r for r in so_far(replies)])

    asked = [prompt for own, _ in parts for prompt in own]
    replies = yield asked, until and is_enough
    found = so_far(replies)
    several = {i: r for i, r in enumerate(found) if isinstance(r, list)}
    if several and is_enough(replies):
        return [_one_reply(r, not_asked(), False) if isinstance(r, list) else r for r in found]
    said = {i: _BETWEEN.join(dict.fromkeys(filter(None, map(_answer, own)))) for i, own in several.items()}
    together = [fitter.parts(with_context(parts[i][0][0], text)) for i, text in said.items()]
    merged = (yield [own[0] for own, _ in together], None) if several else []
    for (i, own), reply, (_, cut) in zip(several.items(), merged, together, strict=True):
        found[i] = _one_reply([*own, reply], reply, cut or parts[i][1])
    return cast("list[Response]", found)


def _of_parts(replies: Sequence[Response], cut: bool) -> Response | list[Response]:
    """Return one reply for those to the parts of a prompt; all of them if they say different things."""
    if len(replies) == 1:
        return _one_reply(replies, replies[0], cut)
    lacking = [r for r in replies if r.text is None and r.refusal is None]
    lacking.sort(key=lambda r: r.skipped_reason is None)  # a failure may be none once all is there
    answers = [r for r in replies if _answer(r)]
    if not lacking and len({_answer(r) for r in answers}) > 1:
        return list(replies)
    return _one_reply(replies, next(iter((*lacking, *answers)), replies[0]), cut)


def _answer(reply: Response) -> str:
    """Return what a reply to a part answers; nothing if it abstains."""
    reply = counted(reply)
    text = (reply.text or "").strip()
    return "" if reply.abstains or is_abstention(text) else text


def _one_reply(replies: Sequence[Response], chosen: Response, cut: bool) -> Response:
    parts = tuple(r.usage for r in replies if r.skipped_reason != "not_asked")
    if chosen.skipped_reason is not None:
        return replace(not_asked(cancelled=bool(parts)), parts=parts)
    return replace(chosen, truncated=cut, parts=parts if len(parts) > 1 else ())
