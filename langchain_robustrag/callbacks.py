"""Callback handlers: our own, wrappers around those of others, and the report as an event."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any, cast
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler, adispatch_custom_event, dispatch_custom_event
from langchain_core.callbacks.base import BaseCallbackManager
from langchain_core.documents import Document
from langchain_core.outputs import ChatGeneration, LLMResult
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import get_callback_manager_for_config

from robustrag_integrations.answers.answer import RobustAnswer

REPORT_EVENT = "robustrag_report"
NOSTREAM = "nostream"  # the tag that LangGraph recognises


class Heard(BaseCallbackHandler):
    """Records the queries to retrievers and what they return, except those that are asked inside another retriever."""

    def __init__(self) -> None:
        self._inside: set[UUID] = set()
        self._outermost: set[UUID] = set()
        self.queries: set[str] = set()
        self.documents: list[Document] = []

    def on_chain_start(self, *args: Any, run_id: UUID, parent_run_id: UUID | None = None, **kwargs: Any) -> None:
        """Note a run inside a retriever."""
        if parent_run_id in self._inside:
            self._inside.add(run_id)

    def on_retriever_start(
        self, serialized: Any, query: str, *, run_id: UUID, parent_run_id: UUID | None = None, **kwargs: Any
    ) -> None:
        """Record the query."""
        if parent_run_id not in self._inside:
            self._outermost.add(run_id)
            if isinstance(query, str):  # a dict reaches it where steps are miswired
                self.queries.add(query)
        self._inside.add(run_id)

    def on_retriever_end(self, documents: Sequence[Document], *, run_id: UUID, **kwargs: Any) -> None:
        """Record the documents."""
        if run_id in self._outermost:
            self.documents.extend(documents)


class ShownMessage(BaseCallbackHandler):
    """Remembers the id of the streamed message, so that a graph does not show it again from its state."""

    def __init__(self) -> None:
        self.id: str | None = None

    def on_llm_end(self, response: LLMResult, *, tags: list[str] | None = None, **kwargs: Any) -> None:
        """Note the message of the final call, which alone is shown."""
        generation = response.generations[0][0] if response.generations and response.generations[0] else None
        if isinstance(generation, ChatGeneration) and NOSTREAM not in (tags or ()):
            self.id = generation.message.id


def in_loop(handler: BaseCallbackHandler) -> BaseCallbackHandler:
    """Wrap a handler for asynchronous calls: its methods are awaited in place, without a thread.

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

        async def awaited(*args: Any, **kwargs: Any) -> None:
            found(*args, **kwargs)

        return awaited if name.startswith("on_") else found


def without_tokens(manager: BaseCallbackManager) -> None:
    """Let handlers learn of a run, but not of its tokens: event streams and graphs would show what a group says."""
    for handlers in (manager.handlers, manager.inheritable_handlers):
        handlers[:] = [cast(Any, _Quiet(h)) if hasattr(h, "tap_output_iter") else h for h in handlers]


class _Quiet:
    """A streaming handler without the attributes by which LangChain recognises it as one."""

    def __init__(self, handler: BaseCallbackHandler) -> None:
        self._handler = handler

    def __getattr__(self, name: str) -> Any:
        if name.startswith(("tap_output", "__")):
            raise AttributeError(name)
        return getattr(self._handler, name)

    def on_llm_new_token(self, *args: Any, **kwargs: Any) -> None:
        """Pass nothing on."""


def has_handlers(config: RunnableConfig) -> bool:
    """True if the config, the context or the environment has callback handlers."""
    return bool(get_callback_manager_for_config(config).handlers)


def send_report(answer: RobustAnswer, config: RunnableConfig) -> None:
    """Send the report of an answer to the run's listeners, if any: writing a report takes as long as a call."""
    if has_handlers(config):
        dispatch_custom_event(REPORT_EVENT, answer.to_dict(), config=config)


async def asend_report(answer: RobustAnswer, config: RunnableConfig) -> None:
    """`send_report` in an event loop."""
    if has_handlers(config):
        await adispatch_custom_event(REPORT_EVENT, answer.to_dict(), config=config)


def attach(error: Exception, answer: RobustAnswer) -> None:
    """Attach the answer to an exception as its `robustness`, if the exception takes attributes."""
    with suppress(AttributeError, TypeError):
        error.robustness = answer  # type: ignore[attr-defined]
