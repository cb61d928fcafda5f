"""Callback handlers: our own, wrappers around those of others, and the report as an event."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any, cast
from uuid import UUID

from langchain_core.callbacks import (
    AsyncCallbackHandler,
    BaseCallbackHandler,
    adispatch_custom_event,
    dispatch_custom_event,
)
from langchain_core.callbacks.base import BaseCallbackManager
from langchain_core.documents import Document
from langchain_core.messages import AIMessageChunk, HumanMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, LLMResult
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import get_callback_manager_for_config
from langchain_core.tracers.base import AsyncBaseTracer, BaseTracer

from langchain_robustrag.messages import answer_fields, answer_message
from robustrag_integrations.answers.answer import RobustAnswer
from robustrag_integrations.plans.drivers import AnswerStream, AsyncAnswerStream

REPORT_EVENT = "robustrag_report"
ANSWER_RUN = "answer"
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
    """Remembers the id of the message that was shown, so that a graph does not show it again from its state."""

    def __init__(self) -> None:
        self.id: str | None = None

    def on_llm_end(self, response: LLMResult, *, tags: list[str] | None = None, **kwargs: Any) -> None:
        """Note the message of the run that shows the answer."""
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
    """Let handlers learn of a run, but not of its tokens: front ends would show what a source says."""
    for handlers in (manager.handlers, manager.inheritable_handlers):
        handlers[:] = [cast(Any, _Quiet(h)) if _shows_tokens(h) else h for h in handlers]


def _shows_tokens(handler: Any) -> bool:
    """True for the handlers of event streams and graphs, and others that do something with tokens; not for traces."""
    if hasattr(handler, "tap_output_iter"):
        return True
    method = getattr(type(handler), "on_llm_new_token", None)
    ignored = (BaseCallbackHandler.on_llm_new_token, AsyncCallbackHandler.on_llm_new_token, None)
    return method not in ignored and not isinstance(handler, (BaseTracer, AsyncBaseTracer))


def is_shown(run_manager: Any, config: RunnableConfig) -> bool:
    """True if a handler shows tokens to somebody, and the answer is not to be hidden from them."""
    return NOSTREAM not in (config.get("tags") or ()) and any(map(_shows_tokens, run_manager.inheritable_handlers))


def as_run(pieces: AnswerStream, run_manager: Any, question: str) -> Iterator[str]:
    """Yield the pieces of an answer; handlers are told them as those of a chat model's run `answer`, whatever is done
    with the answer behind it."""
    messages = [[HumanMessage(question)]]
    [run] = run_manager.get_child().on_chat_model_start({}, messages, name=ANSWER_RUN)
    text = ""
    try:
        for piece in pieces:
            text += piece
            run.on_llm_new_token(piece, chunk=_chunk(piece, run.run_id))
            yield piece
    except BaseException as error:
        run.on_llm_error(error)
        raise
    run.on_llm_new_token("", chunk=_chunk("", run.run_id, **answer_fields(pieces.answer)))
    run.on_llm_end(_result(text, pieces.answer, run.run_id))


class AsyncAnswerRun:
    """`as_run` in an event loop. No generator, which an event loop that ends would close while it closes the stream."""

    def __init__(self, pieces: AsyncAnswerStream, run_manager: Any, question: str) -> None:
        self._pieces, self._manager, self._question = pieces, run_manager.get_child(), question
        self._run: Any = None  # False when it is over
        self._text = ""

    def __aiter__(self) -> AsyncAnswerRun:
        return self

    async def __anext__(self) -> str:
        if self._run is None:
            messages = [[HumanMessage(self._question)]]
            [self._run] = await self._manager.on_chat_model_start({}, messages, name=ANSWER_RUN)
        if not self._run:
            raise StopAsyncIteration
        run = self._run
        try:
            piece = await anext(self._pieces)
        except StopAsyncIteration:
            await run.on_llm_new_token("", chunk=_chunk("", run.run_id, **answer_fields(self._pieces.answer)))
            await run.on_llm_end(_result(self._text, self._pieces.answer, run.run_id))
            self._run = False
            raise
        except BaseException as error:
            await self._failed(error)
            raise
        self._text += piece
        await run.on_llm_new_token(piece, chunk=_chunk(piece, run.run_id))
        return piece

    async def aclose(self) -> None:
        """End the run of an answer that nobody waits for."""
        await self._failed(GeneratorExit())

    async def _failed(self, error: BaseException) -> None:
        if self._run:
            run, self._run = self._run, False
            await run.on_llm_error(error)


def _chunk(text: str, run_id: UUID, **fields: Any) -> ChatGenerationChunk:
    """Return a piece of the answer; the last one is empty and has what the message has besides its text."""
    position: Any = "last" if fields else None
    message = AIMessageChunk(content=text, id=f"lc_run--{run_id}", chunk_position=position, **fields)
    return ChatGenerationChunk(message=message)


def _result(text: str, answer: RobustAnswer, run_id: UUID) -> LLMResult:
    message = answer_message(text, answer, f"lc_run--{run_id}")
    return LLMResult(generations=[[ChatGeneration(message=message)]])


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
