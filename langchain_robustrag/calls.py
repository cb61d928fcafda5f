"""Performing a plan's requests with LangChain: the one driver behind chain, tool, middleware and graph node.

Isolated calls are child runs `group:0`, `group:1`, ... that carry the tag `nostream`, so that no front end shows what a
single group says; only the final call may be streamed. The algorithms are in the core.
"""

from __future__ import annotations

import concurrent.futures
import sys
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, aclosing
from contextvars import Context
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, TypeAlias

from langchain_core.callbacks import AsyncCallbackManagerForChainRun, BaseCallbackHandler, CallbackManagerForChainRun
from langchain_core.runnables import Runnable, RunnableConfig, RunnablePassthrough
from langchain_core.runnables.config import set_config_context
from langchain_core.runnables.utils import coro_with_context

from langchain_robustrag.audit import announced
from langchain_robustrag.callbacks import NOSTREAM, has_handlers, in_loop, without_tokens
from langchain_robustrag.language_models import (
    has_listeners,
    is_synchronous,
    repeats_of_runnable,
    retries_itself,
)
from langchain_robustrag.prompts import FilledPrompt, Requesting, with_request
from langchain_robustrag.replies import Seen, Streamed, response_of
from langchain_robustrag.structured import Structured
from robustrag_integrations._util.checks import check_at_least, check_flag
from robustrag_integrations._util.redaction import in_one_line, presentable, secrets_of
from robustrag_integrations._util.steps import closed_after
from robustrag_integrations.answers.determinism import Repeats
from robustrag_integrations.errors import INTERRUPTS
from robustrag_integrations.models.base import BLANK, Response
from robustrag_integrations.models.caller import ModelCaller
from robustrag_integrations.models.exits import acalled
from robustrag_integrations.models.limits import CallLimits, checked_timeout
from robustrag_integrations.plans.requests import Ask, Reply, Request
from robustrag_integrations.prompts import Prompt
from robustrag_integrations.replies.reply import Piece, without_secrets

ISOLATED = "robustrag:isolated"

RunManager: TypeAlias = CallbackManagerForChainRun | AsyncCallbackManagerForChainRun
ChildRun: TypeAlias = Callable[[BaseCallbackHandler], RunnableConfig]  # maps the handler of a run to the run's config


@dataclass(frozen=True)
class CallOptions:
    """How a chain calls its model.

    Attributes:
        max_concurrency: model calls of the chain under way at a time, over all its callers; a `max_concurrency` in the
            config lowers it. A `HuggingFacePipeline` is always asked one by one.
        timeout: seconds for one call from beginning to end, None for no limit. A group that takes longer has failed.
            The model's own time-out usually is for one read: a server that trickles never exceeds it. A synchronous
            call cannot be stopped from outside; it is given up, and its thread ends when the model returns.
        attempts: tries of one call in all where the server says that it is busy (429, or 500 and above), after as long
            as its Retry-After says. A model that tries again by itself (`max_retries`, `.with_retry`) is left to it.
        accept_sampling: you know that the model may answer otherwise another time: no warning repeats it, while
            `robustness.determinism` still says what holds.
    """

    max_concurrency: int = 10
    timeout: float | None = None
    attempts: int = 3
    accept_sampling: bool = False

    def __post_init__(self) -> None:
        check_at_least(1, max_concurrency=self.max_concurrency, attempts=self.attempts)
        check_flag(accept_sampling=self.accept_sampling)
        object.__setattr__(self, "timeout", checked_timeout(self.timeout))


@dataclass(frozen=True)
class ModelCalls:
    """A language model and the settings of its calls.

    Attributes:
        llm: the model.
        limits: number of calls that may be under way, and how long each may take.
        attempts: tries in all where the server says that it is busy. A model that tries again by itself is left to it.
        structured: the schema of its answers; None for text.
        caller: makes the calls.
        synchronous: True if its asynchronous calls are not implemented.
    """

    llm: Runnable[Any, Any]
    limits: CallLimits
    attempts: int = 3
    structured: Structured | None = None
    caller: ModelCaller = field(init=False)
    synchronous: bool = field(init=False)

    def __post_init__(self) -> None:
        caller = ModelCaller(self.limits, 1 if retries_itself(self.llm) else self.attempts)
        object.__setattr__(self, "caller", caller)
        object.__setattr__(self, "synchronous", is_synchronous(self.llm))

    def asking(self, prompt: Prompt, *, heard: bool = True) -> tuple[Runnable[Any, Any], Any]:
        """Return the runnable to invoke, and its input. If `heard`, it streams, and handlers are told of it."""
        llm = self.llm
        if self.structured is not None:
            llm = self.structured.around(llm)
        if isinstance(prompt, FilledPrompt):
            plain = not heard and type(prompt.template).__module__.startswith("langchain_core.")
            # A sequence opens a run for itself and one for the prompt, which cost as much as the model's own.
            if plain:
                return llm, with_request(prompt.template.format_prompt(**prompt.values), prompt.request)
            asked = Requesting(llm, prompt.request) if prompt.request else llm
            return prompt.template | asked, dict(prompt.values)
        return RunnablePassthrough() | llm, prompt.text

    @property
    def repeats(self) -> Repeats:
        """The model's reproducibility, by its settings."""
        return repeats_of_runnable(self.llm)


@dataclass
class CallPerformer:
    """Performs a text plan's requests with LangChain calls, for one answer.

    Attributes:
        calls: the model, and its calls.
        config: the chain's config.
        run_manager: the chain's run, whose children the calls are.
        final_calls: the same for the final prompt, where that is another model or has a schema.
        final_may_fail: True if there is an answer without the final call; the plan hears of a failure then.
        failure: the first failed call's exception.
    """

    calls: ModelCalls
    config: RunnableConfig
    run_manager: RunManager
    final_calls: ModelCalls | None = None
    final_may_fail: bool = False
    failure: Exception | None = None

    def __call__(self, request: Request) -> Reply:
        """Perform one request."""
        if not isinstance(request, Ask):
            return None
        if request.role == "final":
            return [self._writer.final(request)]
        return self.calls.caller.ask_all(
            self._ask,
            self._groups(request),
            self._failed,
            request.until,
            cap=self.config.get("max_concurrency"),
        )

    async def aperform(self, request: Request) -> Reply:
        """Perform one request without blocking the event loop; cancelling it cancels the calls."""
        if not isinstance(request, Ask):
            return None
        if request.role == "final":
            return [await self._writer.afinal(request)]
        return await self.calls.caller.aask_all(
            self._aask,
            self._groups(request),
            self._failed,
            request.until,
            cap=self.config.get("max_concurrency"),
        )

    def final(self, request: Ask) -> Response:
        """Make the final call."""
        ask = partial(self._ask, (request.prompts[0], self._final(shown=request.shown)))
        try:
            return self.calls.caller.call(ask, cap=self.config.get("max_concurrency"))
        except INTERRUPTS:
            raise
        except BaseException as error:
            failed = self._shown(error)
        if self.final_may_fail and not steers(failed):
            return Response(None, error=in_one_line(failed))
        raise failed

    async def afinal(self, request: Ask) -> Response:
        """`final` without blocking the event loop."""
        ask = partial(self._aask, (request.prompts[0], self._final(shown=request.shown)))
        try:
            return await self.calls.caller.acall(ask, cap=self.config.get("max_concurrency"))
        except INTERRUPTS:
            raise
        except BaseException as error:
            failed = self._shown(error)
        if self.final_may_fail and not steers(failed):
            return Response(None, error=in_one_line(failed))
        raise failed

    def stream_final(self, prompt: Prompt) -> Iterator[Piece]:
        """Yield the final answer in pieces, then its ending."""
        writer = self._writer
        try:
            yield from writer.calls.caller.stream(
                partial(writer._pieces, prompt), cap=self.config.get("max_concurrency")
            )
            return
        except INTERRUPTS:
            raise
        except BaseException as error:
            failed = writer._shown(error)
        raise failed

    async def astream_final(self, prompt: Prompt) -> AsyncGenerator[Piece, None]:
        """`stream_final` without blocking the event loop."""
        writer = self._writer
        try:
            made = writer.calls.caller.astream(partial(writer._apieces, prompt), cap=self.config.get("max_concurrency"))
            async with aclosing(made) as pieces:
                async for piece in pieces:
                    yield piece
            return
        except INTERRUPTS:
            raise
        except BaseException as error:
            failed = writer._shown(error)
        raise failed

    @property
    def _writer(self) -> CallPerformer:
        """The performer of the final call, which may ask another model."""
        return self if self.final_calls is None else replace(self, calls=self.final_calls, final_calls=None)

    @cached_property
    def _heard(self) -> bool:
        """True if anything listens to the runs of the calls."""
        config: RunnableConfig = {**self.config, "callbacks": self.run_manager.get_child()}
        return has_handlers(config) or has_listeners(self.calls.llm)

    def _pieces(self, prompt: Prompt) -> Iterator[Piece]:
        streamed = Streamed(Seen())
        asking, value = self.calls.asking(prompt)
        config = announced(self._final()(streamed.seen), prompt)
        for chunk in asking.stream(value, config):
            yield from streamed.pieces_of(chunk)
        yield from map(self._safe, streamed.end())

    async def _apieces(self, prompt: Prompt) -> AsyncGenerator[Piece, None]:
        streamed = Streamed(Seen())
        asking, value = self.calls.asking(prompt)
        config = announced(self._final()(self._watching(streamed.seen)), prompt)
        made = (
            self.calls.limits.iterate_in_thread(asking.stream(value, config))
            if self.calls.synchronous
            else asking.astream(value, config)
        )
        async with closed_after(made) as chunks:
            async for chunk in chunks:
                for piece in streamed.pieces_of(chunk):
                    yield piece
        for piece in streamed.end():
            yield self._safe(piece)

    def _safe(self, piece: Piece) -> Piece:
        return piece if isinstance(piece, str) else without_secrets(piece, self.calls.llm)

    def _ask(self, asked: tuple[Prompt, ChildRun]) -> Response:
        (prompt, child), seen = asked, Seen()
        if prompt.blank:
            return BLANK
        asking, value = self.calls.asking(prompt, heard=self._heard)
        config = announced(child(seen), prompt)
        with _inside(config) as context:
            reply = context.run(asking.invoke, value, config)
        return without_secrets(response_of(reply, seen.ending), self.calls.llm)

    async def _aask(self, asked: tuple[Prompt, ChildRun]) -> Response:
        (prompt, child), seen = asked, Seen()
        if prompt.blank:
            return BLANK
        asking, value = self.calls.asking(prompt, heard=self._heard)
        reply = await self._ainvoked(asking, value, announced(child(self._watching(seen)), prompt))
        return without_secrets(response_of(reply, seen.ending), self.calls.llm)

    async def _ainvoked(self, asking: Runnable[Any, Any], value: Any, config: RunnableConfig) -> Any:
        with _inside(config) as context:
            if self.calls.synchronous:
                return await self.calls.limits.arun(context.run, asking.invoke, value, config)
            return await coro_with_context(acalled(asking.ainvoke(value, config)), context, create_task=True)

    def _shown(self, error: BaseException) -> Exception:
        """Return the exception, or a presentable one where it holds one of the model's keys."""
        if isinstance(error, Exception) and steers(error):
            return error
        return presentable(error, secrets_of(self.calls.llm))

    def _failed(self, error: BaseException) -> str:
        """Return a failed group's error in words. Raise errors that steer the graph or the task around it."""
        if steers(error):
            raise error
        shown = self._shown(error)
        self.failure = self.failure or shown
        return in_one_line(shown)

    def _watching(self, handler: BaseCallbackHandler) -> BaseCallbackHandler:
        """Return a handler in the form that calls in an event loop need."""
        return handler if self.calls.synchronous else in_loop(handler)

    def _groups(self, request: Ask) -> list[tuple[Prompt, ChildRun]]:
        """Return the prompts, each with its run."""
        tags = (NOSTREAM, ISOLATED)
        return [
            (prompt, partial(self._child, f"group:{index}", tags, {"robustrag_group": index}))
            for index, prompt in enumerate(request.prompts)
        ]

    def _final(self, *, shown: bool = True) -> ChildRun:
        hidden = not shown or NOSTREAM in (self.config.get("tags") or ())
        return partial(self._child, "final", (NOSTREAM,) if hidden else (), {})

    def _child(
        self, name: str, tags: Sequence[str], metadata: Mapping[str, Any], watching: BaseCallbackHandler
    ) -> RunnableConfig:
        """Return the config of a call: the chain's own, built once, as LangChain copies it often enough."""
        callbacks = self.run_manager.get_child(name)
        config: RunnableConfig = {
            **self.config,
            "callbacks": callbacks,
            "run_name": name,
            "tags": sorted({*(self.config.get("tags") or ()), *tags}),
            "metadata": {**(self.config.get("metadata") or {}), **metadata},
        }
        config.pop("run_id", None)
        if tags:
            without_tokens(callbacks)
        callbacks.add_handler(watching)
        return config


def _inside(config: RunnableConfig) -> AbstractContextManager[Context]:
    """The context in which the model of a call runs: its config, without the run name, which belongs to the call."""
    inner = config.copy()
    inner.pop("run_name", None)
    return set_config_context(inner)


def steers(error: BaseException) -> bool:
    """True if an exception is no failure: a cancellation, one of the audit, or a LangGraph interrupt."""
    graph = sys.modules.get("langgraph.errors")
    bubble = (graph.GraphBubbleUp,) if graph else ()
    return isinstance(error, (*INTERRUPTS, concurrent.futures.CancelledError, *bubble))
