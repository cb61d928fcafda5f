"""LangChain's callbacks: handlers of our own, what is done to those of others, and the report as an event."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, cast
from uuid import UUID

from langchain_core.callbacks import (
    AsyncCallbackManagerForLLMRun,
    BaseCallbackHandler,
    adispatch_custom_event,
    dispatch_custom_event,
)
from langchain_core.callbacks.base import BaseCallbackManager
from langchain_core.outputs import ChatGeneration, LLMResult
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import get_callback_manager_for_config

from langchain_robustrag.replies import Seen
from robustrag_integrations.answers.answer import RobustAnswer

REPORT_EVENT = "robustrag_report"
NOSTREAM = "nostream"  # what LangGraph looks for


class OpenRuns(Seen):
    """Knows, too, which models' runs of one call have begun and not ended.

    LangChain closes the chain around a model whose call is cancelled, and leaves the run of the model open.
    """

    def __init__(self) -> None:
        super().__init__()
        self._open: dict[UUID, dict[str, Any]] = {}

    def on_llm_start(self, serialized: Any, prompts: Any, *, run_id: UUID, **kwargs: Any) -> None:
        """A model was called."""
        self._open[run_id] = kwargs

    on_chat_model_start: Any = on_llm_start

    def on_llm_end(self, response: LLMResult, **kwargs: Any) -> None:
        """It has replied."""
        self._open.pop(kwargs["run_id"], None)
        super().on_llm_end(response, **kwargs)

    def on_llm_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        """It has failed."""
        self._open.pop(run_id, None)

    async def close(self, error: BaseException, config: RunnableConfig) -> None:
        """Say of all runs that are still open that they ended in this, to the handlers of the call's config."""
        handlers = list(getattr(config.get("callbacks"), "handlers", ()))
        while self._open:
            run_id, known = self._open.popitem()
            run = AsyncCallbackManagerForLLMRun(
                run_id=run_id,
                handlers=handlers,
                inheritable_handlers=handlers,
                **{name: known.get(name) for name in ("parent_run_id", "tags", "metadata")},
            )
            await run.on_llm_error(error, response=LLMResult(generations=[]))


class HeardQuery(BaseCallbackHandler):
    """Hears what retrievers are asked; those that run inside another retriever are its own business."""

    def __init__(self) -> None:
        self._inside: set[UUID] = set()
        self.queries: set[str] = set()

    def on_chain_start(self, *args: Any, run_id: UUID, parent_run_id: UUID | None = None, **kwargs: Any) -> None:
        """Whatever runs inside of a retriever is inside."""
        if parent_run_id in self._inside:
            self._inside.add(run_id)

    def on_retriever_start(
        self, serialized: Any, query: str, *, run_id: UUID, parent_run_id: UUID | None = None, **kwargs: Any
    ) -> None:
        """Take the query."""
        if parent_run_id not in self._inside and isinstance(query, str):  # a dict reaches it where steps are miswired
            self.queries.add(query)
        self._inside.add(run_id)


class ShownMessage(BaseCallbackHandler):
    """Remembers the id of the message that was streamed, so that a graph does not show it again from the state."""

    def __init__(self) -> None:
        self.id: str | None = None

    def on_llm_end(self, response: LLMResult, *, tags: list[str] | None = None, **kwargs: Any) -> None:
        """Take the final call's message, which alone is shown."""
        generation = response.generations[0][0] if response.generations and response.generations[0] else None
        if isinstance(generation, ChatGeneration) and NOSTREAM not in (tags or ()):
            self.id = generation.message.id


def in_loop(handler: BaseCallbackHandler) -> BaseCallbackHandler:
    """A handler for asynchronous calls, whose methods are awaited where they are called, and in no thread.

    `run_inline` would do the same. But where any handler has it, LangChain (1.0 to 1.8) tells the start of a completion
    model to handlers that have it, and to no other: traces and event streams would lose these runs.
    """
    return cast("BaseCallbackHandler", _InLoop(handler))


class _InLoop:
    run_inline = False

    def __init__(self, handler: BaseCallbackHandler) -> None:
        self._handler = handler

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        found = getattr(self._handler, name)
        if not name.startswith("on_"):
            return found

        async def awaited(*args: Any, **kwargs: Any) -> None:
            found(*args, **kwargs)

        return awaited


def without_tokens(manager: BaseCallbackManager) -> None:
    """Have handlers learn of a run of their own, but not of its tokens.

    What `astream_events` and LangGraph's `stream_mode="messages"` put into a run makes models stream, and shows what
    they say.
    """
    manager.handlers = [_quiet(handler) for handler in manager.handlers]
    manager.inheritable_handlers = [_quiet(handler) for handler in manager.inheritable_handlers]


def _quiet(handler: BaseCallbackHandler) -> BaseCallbackHandler:
    return cast("BaseCallbackHandler", _Quiet(handler)) if hasattr(handler, "tap_output_iter") else handler


class _Quiet:
    """A streaming handler without what tells LangChain that it is one."""

    def __init__(self, handler: BaseCallbackHandler) -> None:
        self._handler = handler

    def __getattr__(self, name: str) -> Any:
        if name.startswith(("tap_output", "__")):
            raise AttributeError(name)
        return getattr(self._handler, name)

    def on_llm_new_token(self, *args: Any, **kwargs: Any) -> None:
        """Nothing is passed on."""


def has_handlers(config: RunnableConfig) -> bool:
    """True if the config, the context or the environment has callback handlers."""
    return bool(get_callback_manager_for_config(config).handlers)


def send_report(answer: RobustAnswer, config: RunnableConfig) -> None:
    """Tell whoever listens to the run of an answer; writing a report that nobody reads would take as long as a call."""
    if has_handlers(config):
        dispatch_custom_event(REPORT_EVENT, answer.to_dict(), config=config)


async def asend_report(answer: RobustAnswer, config: RunnableConfig) -> None:
    """`send_report` in an event loop."""
    if has_handlers(config):
        await adispatch_custom_event(REPORT_EVENT, answer.to_dict(), config=config)


def attach(error: Exception, answer: RobustAnswer) -> None:
    """Give an exception the answer as its `robustness`, if it has room for it."""
    with suppress(AttributeError, TypeError):
        error.robustness = answer  # type: ignore[attr-defined]
