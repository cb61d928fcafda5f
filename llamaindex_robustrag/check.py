"""Runs one question through a program, with canaries in what it retrieves, and tells which prompts they reach."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from inspect import isasyncgen, isawaitable, iscoroutinefunction, isgenerator
from typing import Any

from llama_index.core.agent.workflow import AgentWorkflow
from llama_index.core.async_utils import asyncio_run
from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.base.base_selector import MultiSelection
from llama_index.core.base.response.schema import AsyncStreamingResponse, StreamingResponse
from llama_index.core.chat_engine.types import BaseChatEngine, StreamingAgentChatResponse
from llama_index.core.question_gen.types import SubQuestion
from llama_index.core.schema import NodeRelationship, NodeWithScore, RelatedNodeInfo, TextNode
from llama_index.core.tools import BaseTool, FunctionTool, QueryEngineTool, ToolMetadata, ToolOutput
from llama_index.core.workflow import StartEvent, Workflow

from llamaindex_robustrag.audit import FIX, IsolationAudit, Listener
from llamaindex_robustrag.query_engine import RobustQueryEngineTool
from robustrag_integrations.audit.canaries import Canaries, CheckedRun, planted_metadata
from robustrag_integrations.audit.checking import having, methods_of, replace_methods
from robustrag_integrations.audit.prompts import Audit

_CALLED: ContextVar[dict[str, Any]] = ContextVar("robustrag_called", default={})  # noqa: B039 - never changed


def assert_defended(
    app: Any,
    question: str | Mapping[str, Any],
    *,
    trusted: Collection[str] = (),
    stubs: Mapping[str, Any] | None = None,
) -> CheckedRun:
    """Ask a program one question, and raise if retrieved text reaches a prompt that is not isolated.

    The question is really asked, twice: every retriever returns a planted node, which orders the model to repeat a
    canary, first alone, then in front of those that it found; so does the text of every tool. A strict run-time audit
    looks for canaries, for retrieved text, for answers of one source and for hosted tools. A model that obeys every
    text makes the check sharper. Nothing is vouched for but what ran for this question, and nothing that a single word
    of metadata could do. One check runs at a time in a process, and changes what others there are given.

    Args:
        app: a query engine, a chat engine, an agent, a workflow, a tool, or a function that takes the question. Streams
            that a function returns are read to their end.
        question: what is asked. For a workflow of your own a mapping of its arguments, unless its start event has
            a single field; for a function whatever it takes.
        trusted: names of tools whose results nobody else writes: they get no canary.
        stubs: for each tool that acts (mail, money), what it returns in place of being run.

    Returns:
        What had canaries, and what did not run or could not be seen: nothing is known of that.

    Raises:
        UndefendedError: what was found, each with the calls that led there; or no canary could be planted.
        ValueError: a name in `trusted` or `stubs` of which the program has no tool.
        TypeError: what is no such program, or a workflow whose arguments are not known.
        RuntimeError: another check is running.

    Examples:
        >>> checked = assert_defended(agent, "Who won?", trusted=["add"], stubs={"send_mail": "sent"})
        >>> print(checked)  # with what did not run
    """
    with _checking(app, question, trusted, stubs) as (canaries, audit):
        for canaries.alone in (True, False):
            if isinstance(app, Workflow) or iscoroutinefunction(app):
                asyncio_run(_ask_async(app, question))
            else:
                reply = _ask(app, question)
                if isawaitable(reply) or isasyncgen(reply) or isinstance(reply, AsyncStreamingResponse):
                    asyncio_run(_read_async(reply))
                else:
                    _read(reply)
    return canaries.checked(audit.findings)


async def aassert_defended(
    app: Any,
    question: str | Mapping[str, Any],
    *,
    trusted: Collection[str] = (),
    stubs: Mapping[str, Any] | None = None,
) -> CheckedRun:
    """`assert_defended` in an event loop, by the asynchronous methods; a function as `app` may be asynchronous."""
    with _checking(app, question, trusted, stubs) as (canaries, audit):
        for canaries.alone in (True, False):
            await _ask_async(app, question)
    return canaries.checked(audit.findings)


class _CheckAudit(IsolationAudit):
    """A strict audit that looks for canaries, too."""

    def __init__(self, canaries: Canaries) -> None:
        super().__init__()
        self._audit = Audit("log", FIX, canaries)
        self._listener = _CheckListener(self, canaries)


class _CheckListener(Listener):
    """Tells what may run and what did."""

    def __init__(self, audit: IsolationAudit, canaries: Canaries) -> None:
        super().__init__(audit)
        self._canaries = canaries

    def span_enter(self, id_: str, bound_args: Any, *args: Any, **kwargs: Any) -> None:
        """Note the tools that an agent, a selector or a generator of sub-questions is offered."""
        super().span_enter(id_, bound_args, *args, **kwargs)
        self._canaries.offered(_names_in(bound_args.arguments.values()))

    def span_exit(self, id_: str, bound_args: Any, instance: Any = None, result: Any = None, **kwargs: Any) -> None:
        """Note what a selector or a generator of sub-questions chose: their engines are asked without the tools."""
        super().span_exit(id_, bound_args, instance, result, **kwargs)
        choices = list(bound_args.arguments.get("choices") or ())
        for selection in result.selections if isinstance(result, MultiSelection) else ():
            for name in _names_in([choices[selection.index : selection.index + 1]]):
                self._canaries.ran(name)
        for question in result if isinstance(result, list) else ():
            if isinstance(question, SubQuestion):
                self._canaries.ran(question.tool_name)


@contextmanager
def _checking(
    app: Any, question: Any, trusted: Collection[str], stubs: Mapping[str, Any] | None
) -> Iterator[tuple[Canaries, _CheckAudit]]:
    """Plant canaries in what retrievers and tools return, and audit all prompts, while the block runs."""
    known = (BaseQueryEngine, BaseChatEngine, Workflow, BaseTool)
    if isinstance(app, (list, type)) or not (isinstance(app, known) or callable(app)):
        raise TypeError(f"cannot run a {type(app).__name__}; pass the engine, agent, workflow, tool or function")
    values = [str(v) for v in (question.values() if isinstance(question, Mapping) else [question])]
    canaries = Canaries(next(iter(values), "the question"), trusted, stubs)
    agents = list(app.agents.values()) if isinstance(app, AgentWorkflow) else [app]
    canaries.offered(name for agent in agents for name in _names_in([getattr(agent, "tools", None)]))
    if all(hasattr(agent, "tools") and getattr(agent, "tool_retriever", None) is None for agent in agents):
        canaries.check_names(canaries.stubs)  # before anything acts
    audit, planter = _CheckAudit(canaries), _Planter(canaries)
    for text in values:  # nodes may quote the question
        audit._audit.release(text, agreed=True)
    places = [
        (methods_of(BaseRetriever, ("retrieve", "aretrieve").__contains__), planter.around_retriever),
        (methods_of(BaseTool, ("__call__", "call", "acall").__contains__), planter.around_tool),
    ]
    with canaries.one_check(audit.findings):
        try:
            for stock, around in places:
                replace_methods(stock, around)
            audit.attach()
            yield canaries, audit
        finally:
            audit.detach()
            for stock, _ in places:
                replace_methods(stock)


class _Planter:
    """Wraps methods of retrievers and tools so that what they return has canaries.

    The outermost retriever's list alone is planted in, as a copy, so that nothing stays in indices and caches below it.
    """

    def __init__(self, canaries: Canaries) -> None:
        self._canaries = canaries

    def around_retriever(self, method: Any) -> Any:
        """Return `retrieve` or `aretrieve` with a planted node in its result."""
        return self._outermost(method, self._with_canary)

    def around_tool(self, method: Any) -> Any:
        """Return `call`, `acall` or `__call__` of a tool with a canary in what it says, or with a stub for it."""
        return self._outermost(method, self._said, self._stub)

    def _with_canary(self, retriever: BaseRetriever, name: str, nodes: Any) -> Any:
        if not isinstance(nodes, list) or not all(isinstance(node, NodeWithScore) for node in nodes):
            self._canaries.ran(name, f"no canary could be planted in the {type(nodes).__name__} it returned")
            return nodes
        self._canaries.ran(name)
        _CALLED.get().get("retrieved", []).append(name)
        order, own = self._canaries.order(name), f"canary-{uuid.uuid4()}"
        like = nodes[0].node if nodes else TextNode()
        node = TextNode(
            text=order,
            id_=own,
            metadata=planted_metadata(like.metadata, order),
            relationships={NodeRelationship.SOURCE: RelatedNodeInfo(node_id=own)},
            excluded_llm_metadata_keys=[*like.excluded_llm_metadata_keys],
            excluded_embed_metadata_keys=[*like.excluded_embed_metadata_keys],
        )
        planted = NodeWithScore(node=node, score=nodes[0].score if nodes else None)
        return [planted] if self._canaries.alone else [planted, *nodes]

    def _stub(self, tool: BaseTool, name: str) -> ToolOutput | None:
        if name not in self._canaries.stubs:
            return None
        self._canaries.ran(name)
        value = self._canaries.stubs[name]
        return ToolOutput(content=str(value), tool_name=name, raw_input={}, raw_output=value)

    def _said(self, tool: BaseTool, name: str, output: Any) -> Any:
        self._canaries.ran(name)
        taken = name in self._canaries.trusted or isinstance(tool, RobustQueryEngineTool) or _hands_over(tool)
        if taken:
            return output
        if _CALLED.get()["retrieved"]:  # these canaries tell where it goes
            if not isinstance(tool, QueryEngineTool):
                self._canaries.ran(name, "had no canary besides those of its retrievers")
            return output
        if not isinstance(output, ToolOutput) or output.is_error:
            self._canaries.ran(name, "failed, or gave no text")
            return output
        if output.raw_output is None or isinstance(output.raw_output, (bool, int, float, complex)):
            return output  # nothing that a model could obey
        said = output.model_copy()
        said.content = f"{output.content}\n\n{self._canaries.order(name)}"
        if isinstance(output.raw_output, str):
            said.raw_output = said.content
        return said

    def _outermost(
        self,
        method: Any,
        after: Callable[[Any, str, Any], Any],
        instead: Callable[[Any, str], Any] = lambda called, name: None,
    ) -> Any:
        """Return a method, asynchronous or not, whose result is changed unless it is called within one of its kind.

        Retrievers hold retrievers, `__call__` of a tool calls `call`, and an adapter the tool inside.
        """

        @contextmanager
        def calling(called: Any) -> Iterator[tuple[str, bool]]:
            tool = isinstance(called, BaseTool)
            name = (called.metadata.name if tool else None) or type(called).__name__
            kind, open_now = name if tool else "retriever", _CALLED.get()
            with having(_CALLED, {**open_now, kind: True, "retrieved": [] if tool else open_now.get("retrieved", [])}):
                try:
                    yield name, kind in open_now
                except Exception as error:
                    self._canaries.ran(name, f"failed: {type(error).__name__}")
                    raise

        @wraps(method)
        async def acalled(called: Any, *args: Any, **kwargs: Any) -> Any:
            with calling(called) as (name, inside):
                if (result := instead(called, name)) is not None:
                    return result
                result = await method(called, *args, **kwargs)
                return result if inside else after(called, name, result)

        @wraps(method)
        def ran(called: Any, *args: Any, **kwargs: Any) -> Any:
            with calling(called) as (name, inside):
                if (result := instead(called, name)) is not None:
                    return result
                result = method(called, *args, **kwargs)
                return result if inside else after(called, name, result)

        return acalled if iscoroutinefunction(method) else ran


def _hands_over(tool: BaseTool) -> bool:
    """True for the tool of LlamaIndex by which agents hand over to each other."""
    made_by = getattr(tool.async_fn, "__module__", "") if isinstance(tool, FunctionTool) else ""
    return made_by == AgentWorkflow.__module__


def _names_in(values: Iterable[Any]) -> list[str]:
    """Return the names of the tools in lists."""
    items = [item for value in values if isinstance(value, (list, tuple)) for item in value]
    known = [item.metadata if isinstance(item, BaseTool) else item for item in items]
    return [metadata.name for metadata in known if isinstance(metadata, ToolMetadata) and metadata.name]


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
