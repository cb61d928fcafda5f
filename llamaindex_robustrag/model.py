"""Presents a LlamaIndex LLM as a model of the core's plans."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.bridge.pydantic import BaseModel
from llama_index.core.indices.prompt_helper import PromptHelper
from llama_index.core.llms import LLM

from llamaindex_robustrag.caveats import llm_caveats
from llamaindex_robustrag.fitting import Fitter
from llamaindex_robustrag.llm_calls import FoundAnswer, PlainCalls, StructuredCalls
from robustrag_integrations._util.checks import check_at_least, check_flag
from robustrag_integrations.answers.determinism import Repeats
from robustrag_integrations.models.base import Probed, Response, Role, TextModel, Until
from robustrag_integrations.models.callable import TRANSIENT, CalledModel
from robustrag_integrations.models.caller import ModelCaller
from robustrag_integrations.models.client_errors import checked_errors, is_busy
from robustrag_integrations.models.limits import CallLimits, checked_timeout
from robustrag_integrations.prompts import Prompt
from robustrag_integrations.replies.reply import Piece
from robustrag_integrations.replies.structured import PROBE, ReplyMode


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
        object.__setattr__(self, "known", {})

    def __reduce__(self) -> Any:
        """Reset the counts: a copy, also in another process, counts its own calls and probes its LLM anew."""
        return CallOptions, tuple(getattr(self, each.name) for each in fields(self) if each.init)

    limits: CallLimits = field(init=False, repr=False, compare=False)
    known: dict[int, ReplyMode] = field(init=False, repr=False, compare=False)

    def called_model(self, calls: PlainCalls | StructuredCalls, llm: LLM) -> CalledModel:
        """Wrap the calls in the core's threads, tasks, retries and time-outs."""
        retries = getattr(llm, "max_retries", 0) != 0  # the LLM's client retries by itself
        return CalledModel(
            ModelCaller(
                self.limits,
                self.attempts,
                lambda error: isinstance(error, self.retry_on) or (not retries and is_busy(error)),
            ),
            llm.metadata.model_name,
            calls.ask,
            None if calls.blocks else calls.aask,
            stream=calls.stream if isinstance(calls, PlainCalls) else None,
            astream=calls.astream if isinstance(calls, PlainCalls) and not calls.blocks_streaming else None,
            clients=(llm,),
        )


class LlamaIndexModel(TextModel):
    """A model whose isolated prompts go to the plain LLM, and only the final one to the structured LLM, if any.

    Args:
        llm: a plain LLM.
        policy: how it is called.
        helper: what fits into its window.
        output_cls: what the final answer is to be; None for text.
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
        calls = PlainCalls(llm, prefix, policy.llm_kwargs)
        self._isolated = self._final = policy.called_model(calls, llm)
        writer, written = final_llm or llm, calls
        if output_cls is not None:
            structured = StructuredCalls(writer, output_cls, prefix, policy.llm_kwargs)
            self._final = policy.called_model(structured, writer)
            written = PlainCalls(writer, (), policy.llm_kwargs)
        elif final_llm is not None:
            written = PlainCalls(writer, prefix, policy.llm_kwargs)
            self._final = policy.called_model(written, writer)
        objects = StructuredCalls(llm, FoundAnswer, prefix, policy.llm_kwargs)
        self._objects = policy.called_model(objects, llm)
        self._mode = policy.known.setdefault(id(llm), ReplyMode())  # the LLM lives as long as the policy
        self._ways = ("structured_predict",) if llm.metadata.is_function_calling_model else ()
        self._calls = (calls,) if writer is llm else (calls, written)
        self._fitter = Fitter(helper, llm, calls.frame())
        self._warnings = tuple(dict.fromkeys((*llm_caveats(llm), *llm_caveats(writer))))

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings about the LLM."""
        return self._warnings

    @property
    def repeats(self) -> Repeats:
        """The models' reproducibility, from the LLMs' settings."""
        found = [calls.repeats for calls in self._calls]
        return found[0].with_other(found[-1])

    @property
    def description(self) -> str:
        """The names of the LLM and of the one that writes the final answer."""
        names = dict.fromkeys((self._isolated.description, self._final.description))
        return ", final answer by ".join(names)

    def probe_replies(self) -> Probed:
        """Find out whether the LLM fills in a schema; one without tools, and without a way of its own, is not asked."""
        return self._mode.settled(self._ways, lambda way: self._objects.ask_alone(Prompt(PROBE)))

    async def aprobe_replies(self) -> Probed:
        """`probe_replies` without blocking the event loop."""
        return await self._mode.asettled(self._ways, lambda way: self._objects.aask_alone(Prompt(PROBE)))

    def generate(self, prompts: Sequence[Prompt], role: Role, until: Until | None = None) -> list[Response]:
        """Answer all prompts, `num_workers` at a time, in threads that keep spans and contexts."""
        fitted = self._fitted(prompts)
        return _marked(self._for(role, prompts).generate([p for p, _ in fitted], role, until), fitted)

    async def agenerate(self, prompts: Sequence[Prompt], role: Role, until: Until | None = None) -> list[Response]:
        """`generate` without blocking the event loop; calls that are not waited for are cancelled."""
        fitted = await asyncio.to_thread(self._fitted, prompts)
        return _marked(await self._for(role, prompts).agenerate([p for p, _ in fitted], role, until), fitted)

    generate_until, agenerate_until = generate, agenerate

    def stream(self, prompt: Prompt) -> Iterator[Piece]:
        """Yield the final answer in pieces; a structured one is a single piece of JSON."""
        return self._final.stream(prompt)

    def astream(self, prompt: Prompt) -> AsyncIterator[Piece]:
        """`stream` without blocking the event loop."""
        return self._final.astream(prompt)

    def _fitted(self, prompts: Sequence[Prompt]) -> list[tuple[Prompt, bool]]:
        return [self._fitter.fit(p) for p in prompts]

    def _for(self, role: Role, prompts: Sequence[Prompt]) -> CalledModel:
        if any(prompt.structured for prompt in prompts):
            return self._objects
        return self._final if role == "final" else self._isolated


def _marked(responses: Sequence[Response], fitted: Sequence[tuple[Prompt, bool]]) -> list[Response]:
    return [replace(r, truncated=cut and r.unheard is None) for r, (_, cut) in zip(responses, fitted, strict=True)]
