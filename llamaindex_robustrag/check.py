"""Runs one question through a program under a strict audit."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection, Iterator, Mapping
from contextlib import contextmanager
from inspect import isasyncgen, isawaitable, iscoroutinefunction, isgenerator
from typing import Any

from llama_index.core.agent.workflow import AgentWorkflow, ToolCallResult
from llama_index.core.async_utils import asyncio_run
from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.base.response.schema import AsyncStreamingResponse, StreamingResponse
from llama_index.core.chat_engine.types import BaseChatEngine, StreamingAgentChatResponse
from llama_index.core.workflow import StartEvent, Workflow

from llamaindex_robustrag.audit import FIX, IsolationAudit
from robustrag_integrations.audit.prompts import Audit
from robustrag_integrations.grouping.passages import Passage


def assert_defended(app: Any, question: str | Mapping[str, Any], *, trusted: Collection[str] = ()) -> None:
    """Ask a program one question, and raise if retrieved text reaches a prompt that is not isolated.

    The run-time audit listens, and is strict: text of a single source counts, too, and so does what tools say to
    agents. It vouches for what ran for this question, and for nothing else; see `IsolationAudit` for what it cannot
    see.

    Args:
        app: a query engine, a chat engine, an agent, a workflow, or a function that takes the question. Streams that a
            function returns are read to their end.
        question: what is asked. For a workflow of your own a mapping of its arguments, unless its start event has
            a single field; for a function whatever it takes.
        trusted: names of tools whose results nobody else writes.

    Raises:
        UndefendedError: what was found, each with the calls that led there; or nothing was retrieved.
        TypeError: what is no such program, or a workflow whose arguments are not known.

    Examples:
        >>> assert_defended(agent, "Who won?", trusted=["add"])
    """
    with _checking(app, question, trusted):
        if isinstance(app, Workflow) or iscoroutinefunction(app):
            asyncio_run(_ask_async(app, question))
        else:
            reply = _ask(app, question)
            if isawaitable(reply) or isasyncgen(reply) or isinstance(reply, AsyncStreamingResponse):
                asyncio_run(_read_async(reply))
            else:
                _read(reply)


async def aassert_defended(app: Any, question: str | Mapping[str, Any], *, trusted: Collection[str] = ()) -> None:
    """`assert_defended` in an event loop, by the asynchronous methods; a function as `app` may be asynchronous."""
    with _checking(app, question, trusted):
        await _ask_async(app, question)


class _StrictAudit(IsolationAudit):
    def __init__(self, trusted: Collection[str]) -> None:
        super().__init__()
        self._audit, self._trusted = Audit("log", FIX, strict=True), {*trusted, "handoff"}

    def span_exit(self, id_: str, bound_args: Any, instance: Any = None, result: Any = None, **kwargs: Any) -> None:
        """Register what a tool says to an agent, too."""
        super().span_exit(id_, bound_args, instance, result, **kwargs)
        if isinstance(result, ToolCallResult) and result.tool_name not in self._trusted:
            output = result.tool_output
            self._audit.learn([] if output.is_error else [Passage(output.content)])


@contextmanager
def _checking(app: Any, question: Any, trusted: Collection[str]) -> Iterator[None]:
    if isinstance(app, (list, type)) or not (
        isinstance(app, (BaseQueryEngine, BaseChatEngine, Workflow)) or callable(app)
    ):
        raise TypeError(f"cannot run a {type(app).__name__}; pass the engine, agent, workflow or function")
    audit = _StrictAudit(trusted)
    for text in question.values() if isinstance(question, Mapping) else [question]:
        audit._audit.release(str(text), agreed=True)
    audit.attach()
    try:
        with audit._audit.asserting():
            yield
    finally:
        audit.detach()


def _ask(app: Any, question: Any) -> Any:
    if isinstance(app, BaseQueryEngine):
        return app.query(question)
    return app.chat(question) if isinstance(app, BaseChatEngine) else app(question)


async def _ask_async(app: Any, question: Any) -> None:
    if isinstance(app, BaseQueryEngine):
        reply: Any = app.aquery(question)
    elif isinstance(app, BaseChatEngine):
        reply = app.achat(question)
    elif isinstance(app, Workflow):
        reply = app.run(**_arguments(app, question))
    else:
        reply = app.acall(question) if hasattr(app, "acall") else app(question)
    await _read_async(reply)


def _arguments(flow: Workflow, question: Any) -> Mapping[str, Any]:
    """Return the arguments of a workflow's run."""
    if isinstance(question, Mapping):
        return question
    if hasattr(flow, "tools") or isinstance(flow, AgentWorkflow):
        return {"user_msg": question}
    event = flow.start_event_class
    names = [name for name, field in event.model_fields.items() if field.is_required()]
    if event is StartEvent or len(names) != 1:
        raise TypeError(
            f"what to ask {type(flow).__name__} with is not known; give its arguments as a mapping, such as "
            f"assert_defended(flow, {{'query': {question!r:.40}}})"
        )
    return {names[0]: question}


def _read(reply: Any) -> None:
    """Read a stream to its end."""
    if isinstance(reply, (StreamingResponse, StreamingAgentChatResponse)):
        reply = reply.response_gen
    for _ in reply if isgenerator(reply) else ():
        pass


async def _read_async(reply: Any) -> None:
    """Wait for a reply, and read a stream to its end."""
    if isawaitable(reply):
        reply = await reply
    pieces: AsyncIterator[Any] | None = reply if isasyncgen(reply) else None
    synchronous = getattr(reply, "chat_stream", None) is not None
    if isinstance(reply, (AsyncStreamingResponse, StreamingAgentChatResponse)) and not synchronous:
        pieces = reply.async_response_gen()
    if pieces is None:
        await asyncio.to_thread(_read, reply)
        return
    async for _ in pieces:
        pass
