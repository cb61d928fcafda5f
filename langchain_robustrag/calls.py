"""Performing a plan's requests with LangChain: the one driver behind chain, tool, middleware and graph node.

Isolated calls are child runs `group:0`, `group:1`, ... that carry the tag `nostream`, so that no front end shows what a
single group says; only the final call may be streamed. No algorithm stands here.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import sys
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from langchain_core.callbacks import AsyncCallbackManagerForChainRun, CallbackManagerForChainRun
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import BasePromptTemplate
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.runnables.config import ContextThreadPoolExecutor, merge_configs, patch_config

from langchain_robustrag.language_models import is_synchronous
from langchain_robustrag.limits import CallLimit
from langchain_robustrag.prompts import FilledPrompt
from robustrag_integrations.models.base import Response
from robustrag_integrations.models.call_threads import CallThreads
from robustrag_integrations.models.time_limits import astream_within, await_within
from robustrag_integrations.plans.requests import Ask, Reply, Request
from robustrag_integrations.prompts import Prompt
from robustrag_integrations.redaction import in_one_line, presentable, secrets_of

NOSTREAM = "nostream"  # what LangGraph looks for
ISOLATED = "robustrag:isolated"

RunManager: TypeAlias = CallbackManagerForChainRun | AsyncCallbackManagerForChainRun


@dataclass(frozen=True)
class ModelCalls:
    """What is asked of a language model, and how many calls may be under way.

    Attributes:
        llm: the model.
        isolated: the prompt of every group.
        final: the prompt that keywords go into; None for voting.
        limit: the cap on calls.
        timeout: seconds for one call, None for no limit.
    """

    llm: Runnable[Any, Any]
    isolated: BasePromptTemplate[Any]
    final: BasePromptTemplate[Any] | None
    limit: CallLimit
    timeout: float | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "synchronous", is_synchronous(self.llm))

    synchronous: bool = field(init=False)

    @property
    def asking_group(self) -> Runnable[Any, str]:
        """Prompt, model, text."""
        return self.isolated | self.llm | StrOutputParser()

    @property
    def asking_final(self) -> Runnable[Any, str]:
        """Prompt, model, text; streams."""
        if self.final is None:
            raise TypeError("a vote asks no final question")
        return self.final | self.llm | StrOutputParser()


@dataclass
class CallPerformer:
    """Performs a text plan's requests with LangChain calls, for one answer.

    Attributes:
        calls: what is asked.
        config: the chain's config.
        run_manager: the chain's run, whose children the calls are.
        failure: the first failed call's exception.
    """

    calls: ModelCalls
    config: RunnableConfig
    run_manager: RunManager
    failure: Exception | None = None

    def __call__(self, request: Request) -> Reply:
        """Perform one request."""
        if not isinstance(request, Ask):
            return None
        if request.role == "final":
            with self.calls.limit.slot(self.config.get("max_concurrency")):
                return [Response(self._invoke(self.calls.asking_final, *self._final(request.prompts[0])))]
        return self._ask_groups(request.prompts)

    async def aperform(self, request: Request) -> Reply:
        """Perform one request without blocking the event loop; cancelling it cancels the calls."""
        if not isinstance(request, Ask):
            return None
        if request.role == "final":
            async with self.calls.limit.aslot(self.config.get("max_concurrency")):
                return [Response(await self._ainvoke(self.calls.asking_final, *self._final(request.prompts[0])))]
        return await self._aask_groups(request.prompts)

    def stream_final(self, prompt: Prompt) -> Iterator[str]:
        """The final answer in pieces. It holds no slot: whoever reads the pieces may take their time."""
        try:
            yield from self._threads.stream(self.calls.timeout, self.calls.asking_final.stream(*self._final(prompt)))
            return
        except Exception as error:
            failed = self._shown(error)
        raise failed

    async def astream_final(self, prompt: Prompt) -> AsyncIterator[str]:
        """`stream_final` without blocking the event loop."""
        try:
            async with aclosing(self._apieces(*self._final(prompt))) as pieces:
                async for piece in pieces:
                    yield piece
            return
        except Exception as error:
            failed = self._shown(error)
        raise failed

    def truncates(self, prompt: Prompt) -> bool:
        """What LangChain's models cut is not known."""
        return False

    def _apieces(self, values: Mapping[str, Any], config: RunnableConfig) -> AsyncGenerator[str, None]:
        asking, timeout = self.calls.asking_final, self.calls.timeout
        if self.calls.synchronous:
            return self._threads.astream(timeout, asking.stream(values, config))
        return astream_within(timeout, asking.astream(values, config))

    @property
    def _threads(self) -> CallThreads:
        return self.calls.limit.threads

    def _ask_groups(self, prompts: Sequence[Prompt]) -> list[Response]:
        """Ask all groups at once. Not with `batch`: that returns interrupts as if they were answers."""
        stopped = threading.Event()
        workers = self.calls.limit.lowered(self.config.get("max_concurrency"))
        pool = ContextThreadPoolExecutor(max_workers=min(len(prompts), workers), thread_name_prefix="robustrag")
        try:
            asked = [pool.submit(self._ask_group, index, prompt, stopped) for index, prompt in enumerate(prompts)]
            concurrent.futures.wait(asked, return_when=concurrent.futures.FIRST_EXCEPTION)
            for call in asked:
                if call.done():
                    call.result()
            return [call.result() for call in asked]
        finally:
            stopped.set()
            pool.shutdown(wait=False, cancel_futures=True)

    def _ask_group(self, index: int, prompt: Prompt, stopped: threading.Event) -> Response:
        with self.calls.limit.slot(self.config.get("max_concurrency")):
            if stopped.is_set():
                return Response(None, error="not asked")
            try:
                return Response(self._invoke(self.calls.asking_group, *self._group(index, prompt)))
            except Exception as error:
                return self._failed(error)

    async def _aask_groups(self, prompts: Sequence[Prompt]) -> list[Response]:
        asked = [asyncio.ensure_future(self._aask_group(index, prompt)) for index, prompt in enumerate(prompts)]
        try:
            return list(await asyncio.gather(*asked))
        except BaseException:
            for call in asked:
                call.cancel()
            await asyncio.gather(*asked, return_exceptions=True)
            raise

    async def _aask_group(self, index: int, prompt: Prompt) -> Response:
        async with self.calls.limit.aslot(self.config.get("max_concurrency")):
            try:
                return Response(await self._ainvoke(self.calls.asking_group, *self._group(index, prompt)))
            except Exception as error:
                return self._failed(error)

    def _invoke(self, asking: Runnable[Any, str], values: Mapping[str, Any], config: RunnableConfig) -> str:
        try:
            return self._threads.call(self.calls.timeout, asking.invoke, values, config)
        except Exception as error:
            failed = self._shown(error)
        raise failed

    async def _ainvoke(self, asking: Runnable[Any, str], values: Mapping[str, Any], config: RunnableConfig) -> str:
        try:
            if self.calls.synchronous:
                return await self._threads.acall(self.calls.timeout, asking.invoke, values, config)
            return await await_within(self.calls.timeout, asking.ainvoke(values, config))
        except Exception as error:
            failed = self._shown(error)
        raise failed

    def _shown(self, error: Exception) -> Exception:
        """The exception, or what may be shown of it where it holds one of the model's keys."""
        return error if isinstance(error, _steering()) else presentable(error, secrets_of(self.calls.llm))

    def _failed(self, error: Exception) -> Response:
        """A failed group is an abstention, unless the exception steers the graph or the task around it."""
        if isinstance(error, _steering()):
            raise error
        self.failure = self.failure or error
        return Response(None, error=in_one_line(error))

    def _group(self, index: int, prompt: Prompt) -> tuple[dict[str, Any], RunnableConfig]:
        extra: RunnableConfig = {
            "run_name": f"group:{index}",
            "tags": [NOSTREAM, ISOLATED],
            "metadata": {"robustrag_group": index},
        }
        config = child_config(self.config, self.run_manager, f"group:{index}")
        return _values_of(prompt), merge_configs(config, extra)

    def _final(self, prompt: Prompt) -> tuple[dict[str, Any], RunnableConfig]:
        config = merge_configs(child_config(self.config, self.run_manager, "final"), {"run_name": "final"})
        return _values_of(prompt), config


def _values_of(prompt: Prompt) -> dict[str, Any]:
    if not isinstance(prompt, FilledPrompt):
        raise TypeError(f"the plan's prompts must come from `filled_prompts`, got a {type(prompt).__name__}")
    return dict(prompt.values)


def child_config(config: RunnableConfig, run_manager: RunManager, tag: str) -> RunnableConfig:
    """The config of a child run: the chain's own, without its run name and run id."""
    return patch_config(config, callbacks=run_manager.get_child(tag))


def _steering() -> tuple[type[BaseException], ...]:
    """Exceptions that are no failures: cancellation, and LangGraph's interrupts, which are `Exception`s."""
    graph = sys.modules.get("langgraph.errors")
    bubble = (graph.GraphBubbleUp,) if graph else ()
    return (asyncio.CancelledError, concurrent.futures.CancelledError, *bubble)
