"""Runs one question through a program, with canaries in what it retrieves, and tells which prompts they reach."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from inspect import isasyncgen, isawaitable, iscoroutinefunction, isgenerator
from typing import Any

from llama_index.core.agent.workflow import AgentWorkflow
from llama_index.core.async_utils import asyncio_run
from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.base.response.schema import AsyncStreamingResponse, StreamingResponse
from llama_index.core.chat_engine.types import BaseChatEngine, StreamingAgentChatResponse
from llama_index.core.schema import NodeRelationship, NodeWithScore, RelatedNodeInfo, TextNode
from llama_index.core.tools import BaseTool, FunctionTool, QueryEngineTool, ToolOutput
from llama_index.core.workflow import Workflow

from llamaindex_robustrag.audit import IsolationAudit
from llamaindex_robustrag.query_engine import RobustQueryEngineTool
from robustrag_integrations.audit.check import Canaries, CheckedRun, having, methods_of, planted_metadata
from robustrag_integrations.plans.drivers import TextPerformer

_CALLED: ContextVar[dict[str, Any]] = ContextVar("robustrag_called", default={})  # noqa: B039 - never changed


def assert_defended(
    app: Any,
    question: str | Mapping[str, Any],
    *,
    pass_through: Collection[str] = (),
    stubs: Mapping[str, Any] | None = None,
) -> CheckedRun:
    """Ask a program one question, and raise if retrieved text reaches a prompt that is not isolated.

    The question is really asked, twice: every retriever returns a planted node, which orders the model to repeat a
    canary, first alone, then in front of those that it found; so does the text of every tool. A strict run-time audit
    looks for canaries, retrieved text, answers of one source and hosted tools. Nothing is vouched for but what ran for
    this question. One check runs at a time in a process, and changes what others there are given.

    Args:
        app: a query engine, a chat engine, an agent, a workflow, a tool, or a function that takes the question, of
            which a stream is read to its end.
        question: what is asked; for a workflow of your own a mapping of its arguments.
        pass_through: names of tools whose results nobody else writes: they get no canary.
        stubs: for each tool that acts (mail, money), what it returns in place of being run.

    Returns:
        What had canaries, and what did not run or could not be seen: nothing is known of that.

    Raises:
        UndefendedError: what was found, each with the calls that led there; or no canary could be planted.
        ValueError: a name in `pass_through` or `stubs` of which the program has no tool.

    Examples:
        >>> checked = assert_defended(agent, "Who won?", pass_through=["add"], stubs={"send_mail": "sent"})
        >>> print(checked)  # with what did not run
    """
    with _checking(app, question, pass_through, stubs) as (canaries, audit):
        for canaries.alone in (True, False):
            if isinstance(app, Workflow):
                asyncio_run(_ask(app, question))
            elif isinstance(app, BaseQueryEngine):
                str(app.query(str(question)))  # a stream is read to its end
            elif isinstance(app, BaseChatEngine):
                app.chat(str(question))
            elif _is_unread(reply := app(question)):
                asyncio_run(_read(reply))
    return canaries.checked(audit.findings)


async def aassert_defended(
    app: Any,
    question: str | Mapping[str, Any],
    *,
    pass_through: Collection[str] = (),
    stubs: Mapping[str, Any] | None = None,
) -> CheckedRun:
    """`assert_defended` in an event loop, by the asynchronous methods; a function as `app` may be asynchronous."""
    with _checking(app, question, pass_through, stubs) as (canaries, audit):
        for canaries.alone in (True, False):
            await _ask(app, question)
    return canaries.checked(audit.findings)


async def _ask(app: Any, question: Any) -> None:
    if isinstance(app, BaseQueryEngine):
        await asyncio.to_thread(str, await app.aquery(question))  # a stream is read to its end
    elif isinstance(app, BaseChatEngine):
        await app.achat(question)
    elif isinstance(app, Workflow):
        await app.run(**(question if isinstance(question, Mapping) else {"user_msg": question}))
    else:
        await _read(getattr(app, "acall", app)(question))


_STREAMS = (AsyncStreamingResponse, StreamingResponse, StreamingAgentChatResponse)


def _is_unread(reply: Any) -> bool:
    return isinstance(reply, _STREAMS) or isawaitable(reply) or isasyncgen(reply) or isgenerator(reply)


async def _read(reply: Any) -> None:
    """Wait for a function's reply, and read a stream to its end: its prompts may come as late as that."""
    if isawaitable(reply):
        reply = await reply
    if isinstance(reply, StreamingAgentChatResponse):
        reply = reply.response_gen if reply.chat_stream is not None else reply.async_response_gen()
    elif isinstance(reply, _STREAMS):
        reply = reply.response_gen if isinstance(reply, StreamingResponse) else reply.async_response_gen()
    if isasyncgen(reply):
        async for _ in reply:
            pass
    elif isgenerator(reply):
        await asyncio.to_thread(lambda: [None for _ in reply])


@contextmanager
def _checking(
    app: Any, question: Any, pass_through: Collection[str], stubs: Mapping[str, Any] | None
) -> Iterator[tuple[Canaries, IsolationAudit]]:
    values = [str(v) for v in (question.values() if isinstance(question, Mapping) else [question])]
    canaries = Canaries(next(iter(values), "the question"), pass_through, stubs)
    agents = list(app.agents.values()) if isinstance(app, AgentWorkflow) else [app]
    tools = [tool for agent in agents for tool in getattr(agent, "tools", None) or ()]
    canaries.offered(tool.metadata.name for tool in tools if isinstance(tool, BaseTool) and tool.metadata.name)
    if all(hasattr(agent, "tools") and getattr(agent, "tool_retriever", None) is None for agent in agents):
        canaries.check_names(canaries.stubs)  # before anything acts
    audit, planter = IsolationAudit(pass_through=pass_through), _Planter(canaries)
    audit._audit.canaries = canaries
    for text in values:  # nodes may quote the question
        audit._audit.allow(text)
    changes = [
        (methods_of(BaseRetriever, ("retrieve", "aretrieve").__contains__), planter.around),
        (methods_of(BaseTool, ("__call__", "call", "acall").__contains__), planter.around),
        (methods_of(TextPerformer, ("__call__", "aperform").__contains__), canaries.obeying),
    ]
    with canaries.one_check(audit.findings, changes):
        audit.attach()
        try:
            yield canaries, audit
        finally:
            audit.detach()


class _Planter:
    """Wraps methods of retrievers and tools so that what they return has canaries.

    What the outermost one returns alone is planted in, as a copy, so that nothing stays in indices and caches below it:
    retrievers hold retrievers, `__call__` of a tool calls `call`, and an adapter the tool inside.
    """

    def __init__(self, canaries: Canaries) -> None:
        self._canaries = canaries

    def around(self, method: Any) -> Any:
        """Return a method, asynchronous or not, with a canary in its result, or with a stub for it."""

        @wraps(method)
        async def acalled(called: Any, *args: Any, **kwargs: Any) -> Any:
            with self._calling(called) as (stub, planted):
                return stub if stub is not None else planted(await method(called, *args, **kwargs))

        @wraps(method)
        def ran(called: Any, *args: Any, **kwargs: Any) -> Any:
            with self._calling(called) as (stub, planted):
                return stub if stub is not None else planted(method(called, *args, **kwargs))

        return acalled if iscoroutinefunction(method) else ran

    @contextmanager
    def _calling(self, called: Any) -> Iterator[tuple[ToolOutput | None, Callable[[Any], Any]]]:
        name = (called.metadata.name if isinstance(called, BaseTool) else None) or type(called).__name__
        kind, open_now = name if isinstance(called, BaseTool) else "retriever", _CALLED.get()
        if kind in open_now:
            yield None, lambda result: result
        elif name in self._canaries.stubs:
            self._canaries.ran(name)
            value = self._canaries.stubs[name]
            yield ToolOutput(content=str(value), tool_name=name, raw_input={}, raw_output=value), lambda result: result
        elif isinstance(called, BaseRetriever):
            with having(_CALLED, {**open_now, kind: True}):
                yield None, lambda nodes: self._planted(name, nodes)
        else:
            retrieved: list[str] = []
            with having(_CALLED, {**open_now, kind: True, "retrieved": retrieved}):
                try:
                    yield None, lambda output: self._said(called, name, output, retrieved)
                except Exception as error:
                    self._canaries.ran(name, f"failed: {type(error).__name__}")
                    raise

    def _planted(self, name: str, found: Any) -> Any:

        def made(first: NodeWithScore | None, order: str) -> NodeWithScore:
            _CALLED.get().get("retrieved", []).append(name)
            own, like = f"canary-{uuid.uuid4()}", TextNode() if first is None else first.node
            node = TextNode(
                text=order,
                id_=own,
                metadata=planted_metadata(like.metadata, order),
                relationships={NodeRelationship.SOURCE: RelatedNodeInfo(node_id=own)},
                excluded_llm_metadata_keys=[*like.excluded_llm_metadata_keys],
                excluded_embed_metadata_keys=[*like.excluded_embed_metadata_keys],
            )
            return NodeWithScore(node=node, score=None if first is None else first.score)

        return self._canaries.found(name, found, lambda item: isinstance(item, NodeWithScore), made)

    def _said(self, tool: BaseTool, name: str, output: Any, retrieved: list[str]) -> Any:
        self._canaries.ran(name)
        if name in self._canaries.pass_through or isinstance(tool, RobustQueryEngineTool) or _hands_over(tool):
            return output
        if retrieved:  # these canaries tell where it goes
            if not isinstance(tool, QueryEngineTool):
                self._canaries.ran(name, "had no canary besides those of its retrievers")
            return output
        if not isinstance(output, ToolOutput) or output.is_error:
            self._canaries.ran(name, "failed, or gave no text")
            return output
        if output.raw_output is None or isinstance(output.raw_output, (bool, int, float, complex)):
            return output  # nothing that a model could obey
        said = output.model_copy()
        said.content = self._canaries.said(name, output.content)
        if isinstance(output.raw_output, str):
            said.raw_output = said.content
        return said


def _hands_over(tool: BaseTool) -> bool:
    """True for the tool of LlamaIndex by which agents hand over to each other."""
    made_by = getattr(tool.async_fn, "__module__", "") if isinstance(tool, FunctionTool) else ""
    return made_by == AgentWorkflow.__module__
