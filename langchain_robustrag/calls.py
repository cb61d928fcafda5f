"""Performing a plan's requests with LangChain: the one driver behind chain, tool, middleware and graph node.

Isolated calls are child runs `group:0`, `group:1`, ... that carry the tag `nostream`, so that no front end shows what a
single group says; only the final call may be streamed. The algorithms are in the core.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import sys
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from langchain_core.callbacks import AsyncCallbackManagerForChainRun, CallbackManagerForChainRun
from langchain_core.output_parsers import StrOutputParser
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.runnables.config import ContextThreadPoolExecutor, merge_configs, patch_config

from langchain_robustrag.language_models import is_synchronous
from langchain_robustrag.limits import CallLimit
from langchain_robustrag.prompts import FilledPrompt
from langchain_robustrag.quiet import quieted
from robustrag_integrations.errors import INTERRUPTS
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
    """How a language model is called.

    Attributes:
        llm: the model.
        limit: the cap on calls under way.
        timeout: seconds for one call, None for no limit.
        synchronous: whether its asynchronous calls are not implemented.
    """

    llm: Runnable[Any, Any]
    limit: CallLimit
    timeout: float | None = None
    synchronous: bool = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "synchronous", is_synchronous(self.llm))

    def asking(self, prompt: Prompt) -> tuple[Runnable[Any, str], Any]:
        """What to invoke, and with which input: prompt, model, text. It streams."""
        if isinstance(prompt, FilledPrompt):
            return prompt.template | self.llm | StrOutputParser(), dict(prompt.values)
        return self.llm | StrOutputParser(), prompt.text


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
                return [Response(self._invoke(request.prompts[0], self._final(shown=request.shown)))]
        return self._ask_groups(request.prompts)

    async def aperform(self, request: Request) -> Reply:
        """Perform one request without blocking the event loop; cancelling it cancels the calls."""
        if not isinstance(request, Ask):
            return None
        if request.role == "final":
            async with self.calls.limit.aslot(self.config.get("max_concurrency")):
                return [Response(await self._ainvoke(request.prompts[0], self._final(shown=request.shown)))]
        return await self._aask_groups(request.prompts)

    def stream_final(self, prompt: Prompt) -> Iterator[str]:
        """The final answer in pieces. It holds no slot, since its reader may be slow."""
        asking, value = self.calls.asking(prompt)
        try:
            yield from self._threads.stream(self.calls.timeout, asking.stream(value, self._final()))
            return
        except INTERRUPTS:
            raise
        except BaseException as error:
            failed = self._shown(error)
        raise failed

    async def astream_final(self, prompt: Prompt) -> AsyncIterator[str]:
        """`stream_final` without blocking the event loop."""
        try:
            async with aclosing(self._apieces(prompt, self._final())) as pieces:
                async for piece in pieces:
                    yield piece
            return
        except INTERRUPTS:
            raise
        except BaseException as error:
            failed = self._shown(error)
        raise failed

    def truncates(self, prompt: Prompt) -> bool:
        """What LangChain's models cut is not known."""
        return False

    def _apieces(self, prompt: Prompt, config: RunnableConfig) -> AsyncGenerator[str, None]:
        asking, value = self.calls.asking(prompt)
        if self.calls.synchronous:
            return self._threads.astream(self.calls.timeout, asking.stream(value, config))
        return astream_within(self.calls.timeout, asking.astream(value, config))

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
                return Response(self._invoke(prompt, self._group(index)))
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
                return Response(await self._ainvoke(prompt, self._group(index)))
            except Exception as error:
                return self._failed(error)

    def _invoke(self, prompt: Prompt, config: RunnableConfig) -> str:
        asking, value = self.calls.asking(prompt)
        try:
            return self._threads.call(self.calls.timeout, asking.invoke, value, config)
        except INTERRUPTS:
            raise
        except BaseException as error:
            failed = self._shown(error)
        raise failed

    async def _ainvoke(self, prompt: Prompt, config: RunnableConfig) -> str:
        asking, value = self.calls.asking(prompt)
        try:
            if self.calls.synchronous:
                return await self._threads.acall(self.calls.timeout, asking.invoke, value, config)
            return await await_within(self.calls.timeout, asking.ainvoke(value, config))
        except INTERRUPTS:
            raise
        except BaseException as error:
            failed = self._shown(error)
        raise failed

    def _shown(self, error: BaseException) -> Exception:
        """The exception, or what may be shown of it where it holds one of the model's keys."""
        if isinstance(error, Exception) and steers(error):
            return error
        return presentable(error, secrets_of(self.calls.llm))

    def _failed(self, error: Exception) -> Response:
        """A failed group is an abstention, unless the exception steers the graph or the task around it."""
        if steers(error):
            raise error
        self.failure = self.failure or error
        return Response(None, error=in_one_line(error))

    def _group(self, index: int) -> RunnableConfig:
        extra: RunnableConfig = {
            "run_name": f"group:{index}",
            "tags": [NOSTREAM, ISOLATED],
            "metadata": {"robustrag_group": index},
        }
        return quieted(merge_configs(child_config(self.config, self.run_manager, f"group:{index}"), extra))

    def _final(self, *, shown: bool = True) -> RunnableConfig:
        child = child_config(self.config, self.run_manager, "final")
        if shown and NOSTREAM not in (self.config.get("tags") or ()):
            return merge_configs(child, {"run_name": "final"})
        return quieted(merge_configs(child, {"run_name": "final", "tags": [NOSTREAM]}))


def child_config(config: RunnableConfig, run_manager: RunManager, tag: str) -> RunnableConfig:
    """The config of a child run: the chain's own, without its run name and run id."""
    return patch_config(config, callbacks=run_manager.get_child(tag))


def steers(error: BaseException) -> bool:
    """Whether an exception is no failure: a cancellation, or one of LangGraph's interrupts, which are `Exception`s."""
    graph = sys.modules.get("langgraph.errors")
    bubble = (graph.GraphBubbleUp,) if graph else ()
    return isinstance(error, (asyncio.CancelledError, concurrent.futures.CancelledError, *bubble))
