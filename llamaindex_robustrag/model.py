"""Performs the requests of the core's plans with a LlamaIndex LLM."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.bridge.pydantic import BaseModel
from llama_index.core.indices.prompt_helper import PromptHelper
from llama_index.core.llms import LLM

from llamaindex_robustrag.fitting import Fitter
from llamaindex_robustrag.llm_calls import LLMCalls, PlainCalls, StructuredCalls
from robustrag_integrations._util.checks import check_at_least, check_flag
from robustrag_integrations.answers.determinism import Repeats
from robustrag_integrations.models.base import Response
from robustrag_integrations.models.callable import TRANSIENT
from robustrag_integrations.models.caller import ModelCaller
from robustrag_integrations.models.client_errors import checked_errors, is_busy
from robustrag_integrations.models.limits import CallLimits, checked_timeout
from robustrag_integrations.plans.requests import Ask, Reply, Request, Score
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
        object.__setattr__(self, "retry_on", checked_errors(self.retry_on))
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


class LlamaIndexPerformer:
    """Performs a text plan's requests with an LLM: isolated prompts go to the plain LLM, the final one to the
    structured LLM, if any.

    Args:
        llm: a plain LLM.
        policy: limits, retries and arguments of its calls.
        helper: the window's size and tokenizer.
        output_cls: the class of the final answer; None for text.
        prefix: a conversation so far, in front of every prompt.
        final_llm: a plain LLM that is asked the final prompt in place of `llm`.
    """

    def __init__(
        self,
        llm: LLM,
        policy: CallOptions,
        helper: PromptHelper,
        *,
        output_cls: type[BaseModel] | None = None,
        prefix: Sequence[ChatMessage] = (),
        final_llm: LLM | None = None,
    ) -> None:
        writer, kwargs, caller = final_llm or llm, policy.llm_kwargs, policy.caller_of(llm)
        self._isolated = PlainCalls(llm, prefix, kwargs, caller)
        self._written = PlainCalls(writer, prefix, kwargs, policy.caller_of(writer))
        self._final: LLMCalls = self._written
        if output_cls is not None:
            self._final = StructuredCalls.of(output_cls, writer, prefix, kwargs, self._written.caller)
        self._streamed = self._final.streamed()
        self._fitter = Fitter(helper, llm, self._isolated.frame())

    @property
    def repeats(self) -> Repeats:
        """The models' reproducibility, from the LLMs' settings."""
        return self._isolated.repeats.with_other(self._written.repeats)

    def __call__(self, request: Request) -> Reply:
        """Perform one request; isolated prompts `num_workers` at a time, in threads that keep spans and contexts."""
        if isinstance(request, Score):
            return self._isolated.score([self._fitter.fit(prompt)[0] for prompt in request.prompts], request.texts)
        if not isinstance(request, Ask):
            return None
        calls, fitted = self._for(request), [self._fitter.fit(prompt) for prompt in request.prompts]
        said = calls.caller.ask_all(calls.ask, [prompt for prompt, _ in fitted], calls.in_words, request.until)
        return _marked(said, fitted)

    async def aperform(self, request: Request) -> Reply:
        """Perform one request without blocking the event loop; calls that are not waited for are cancelled."""
        if isinstance(request, Score):
            prompts = await asyncio.to_thread(lambda: [self._fitter.fit(prompt)[0] for prompt in request.prompts])
            return await self._isolated.ascore(prompts, request.texts)
        if not isinstance(request, Ask):
            return None
        calls = self._for(request)
        fitted = await asyncio.to_thread(lambda: [self._fitter.fit(prompt) for prompt in request.prompts])
        prompts = [prompt for prompt, _ in fitted]
        return _marked(await calls.caller.aask_all(calls.aask, prompts, calls.in_words, request.until), fitted)

    def stream_final(self, prompt: Prompt) -> Iterator[Piece]:
        """Yield the final answer in pieces; a structured one is a single piece of JSON."""
        return self._streamed.stream(prompt)

    def astream_final(self, prompt: Prompt) -> AsyncIterator[Piece]:
        """`stream_final` for `async for`."""
        return self._streamed.astream(prompt)

    def _for(self, request: Ask) -> LLMCalls:
        return self._final if request.role == "final" else self._isolated


def _marked(responses: Sequence[Response], fitted: Sequence[tuple[Prompt, bool]]) -> list[Response]:
    return [replace(r, truncated=cut and r.unheard is None) for r, (_, cut) in zip(responses, fitted, strict=True)]
