"""The audit at run time: finds prompts of a LlamaIndex program that hold texts of several sources."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from functools import wraps
from typing import Any

from llama_index.core import instrumentation
from llama_index.core.base.llms.types import ChatMessage, MessageRole, ToolCallBlock
from llama_index.core.bridge.pydantic import BaseModel
from llama_index.core.instrumentation.span import active_span_id
from llama_index.core.llms import LLM
from llama_index.core.llms.function_calling import FunctionCallingLLM
from llama_index.core.query_engine import MultiStepQueryEngine, SubQuestionQueryEngine
from llama_index.core.response_synthesizers import BaseSynthesizer
from llama_index.core.schema import BaseNode, MetadataMode, NodeWithScore

from llamaindex_robustrag.grouping import source_of
from llamaindex_robustrag.prompts import as_messages
from llamaindex_robustrag.reports import RobustAnswerEvent
from robustrag_integrations.audit.audit import Audit, Message, On, Runs, texts_in
from robustrag_integrations.audit.check import having, methods_of
from robustrag_integrations.audit.findings import Finding
from robustrag_integrations.audit.hosted import hosted_in, hosted_tool
from robustrag_integrations.grouping.passages import Passage

_MOST_SPANS = 10_000
_MOST_PARTS = 20_000  # of one span's arguments or result
_DEEPEST = 8
FIX = (
    "answer with RobustRAGQueryEngine.from_args(retriever, llm=llm) or "
    "as_query_engine(response_synthesizer=RobustRAGSynthesizer(llm=llm)), chat with RobustContextChatEngine, and give "
    "agents, routers and sub-questions the engine as a RobustQueryEngineTool"
)
_NO_HOSTED = "leave it out, and search by a retriever: RobustQueryEngineTool"
_METHODS = {
    f"{way}{kind}" for way in ("", "a", "stream_", "astream_") for kind in ("chat", "complete", "chat_with_tools")
}
_FIELDS = ("built_in_tools", "built_in_tool", "additional_kwargs")  # of LlamaIndex's LLMs, with what every call sends
_ANNOUNCED: ContextVar[str | None] = ContextVar("robustrag_announced", default=None)


def announced(prompt: str) -> AbstractContextManager[None]:
    """Mark LLM calls in this context as asking this prompt of ours, with whatever the LLM adds around it."""
    return having(_ANNOUNCED, prompt)


def hosted_tools_of(llm: LLM, call: Mapping[str, Any] | None = None) -> list[str]:
    """Return the names of the tools that an LLM's provider runs, by the LLM's fields and the arguments of a call."""
    own = {field: getattr(llm, field, None) for field in _FIELDS}
    return list(dict.fromkeys([*hosted_in(own), *hosted_in(call or {})]))


class IsolationAudit:
    """Checks every prompt of every LLM: no prompt may hold texts of two sources, or an answer of one source.

    The latter is a `RobustAnswer` on which no two sources agree, or an abstention that quotes sources: another model
    obeys it like any text. What was retrieved is learnt from the arguments and results of whatever LlamaIndex traces.
    It sees text of 30 characters or more as it was retrieved, up to spacing and JSON escapes; several copies of one
    text count as one source. What it does not see: text that a function fetches and joins by itself (tell it with
    `learn`), text that was reworded, translated or cut shorter, and prompts of what is no LlamaIndex LLM.

    Args:
        on: `"log"` warns of a finding; `"raise"` raises an `UndefendedError`, so that the LLM is never asked. A
            document that quotes a prompt of yours can then stop an answer.
        pass_through: names of tools whose results nobody else writes.

    Examples:
        >>> audit = IsolationAudit(on="raise").attach()
        >>> engine.query("Who won?")
    """

    def __init__(self, on: On = "log", pass_through: Collection[str] = ()) -> None:
        self._audit = Audit(on, FIX, pass_through)
        self._listener = _Listener(self)
        self._composed: deque[str] = deque(maxlen=_MOST_SPANS)  # the ids of nodes that engines made of answers

    @property
    def findings(self) -> list[Finding]:
        """The findings so far, each place once."""
        return self._audit.findings

    def learn(self, nodes: Iterable[NodeWithScore | BaseNode]) -> None:
        """Register nodes that nothing traced shows."""
        found = [n.node if isinstance(n, NodeWithScore) else n for n in nodes]
        self._audit.learn(
            Passage(n.get_content(MetadataMode.LLM) or "", metadata=n.metadata, document_id=source_of(n))
            for n in found
            if n.node_id not in self._composed
        )

    def attach(self) -> IsolationAudit:
        """Start listening to all of LlamaIndex in this process."""
        root = _root()
        root.add_event_handler(self._listener)
        root.add_span_handler(self._listener)
        _CALLS.start(self)
        return self

    def detach(self) -> None:
        """Stop listening."""
        for handlers in (_root().event_handlers, _root().span_handlers):
            handlers[:] = [h for h in handlers if h is not self._listener]
        _CALLS.stop(self)

    def _look(self, arguments: Sequence[Any], llm: LLM, method: str, hosted: Sequence[str]) -> None:
        """Check one call of an LLM: the messages and texts among its arguments."""
        component = type(llm).__name__
        if hosted:
            self._audit.add(hosted_tool(hosted, f"{component}.{method}", component, _NO_HOSTED))
        own = _ANNOUNCED.get()
        pieces = None if own is None else [str(m.content or "") for m in as_messages(own, ())]
        parts = [part for value in arguments for part in (value if isinstance(value, (list, tuple)) else [value])]
        said = [p.model_dump() if isinstance(p, ChatMessage) else p for p in parts]
        shown = texts_in([p for p, given in zip(said, parts, strict=True) if isinstance(given, (str, ChatMessage))])
        path = " > ".join([*self._listener.path(), f"{component}.{method}"])
        self._audit.look(shown, path, component, pieces)
        prompt = [part for part in parts if isinstance(part, ChatMessage)]
        self._audit.look_at_results(_messages_of(prompt), path, component)


@contextmanager
def audit_isolation(on: On = "log", pass_through: Collection[str] = ()) -> Iterator[IsolationAudit]:
    """Check every prompt of every LlamaIndex LLM in this process while the block runs; see `IsolationAudit`.

    Examples:
        >>> with audit_isolation() as audit:
        ...     engine.query("Who won?")
        >>> assert not audit.findings
    """
    audit = IsolationAudit(on, pass_through).attach()
    try:
        yield audit
    finally:
        audit.detach()


class _Listener:
    """Learns from LlamaIndex's spans and events what was retrieved, and which calls are under way."""

    def __init__(self, audit: IsolationAudit) -> None:
        self._audit = audit
        self._runs = Runs[str]()
        self._composing: deque[str] = deque(maxlen=_MOST_SPANS)  # calls that make nodes of answers

    def path(self) -> list[str]:
        return [name for _, name in self._runs.around(active_span_id.get())][::-1]

    def handle(self, event: Any, **kwargs: Any) -> None:
        if isinstance(event, RobustAnswerEvent):
            self._audit._audit.release(event.report)

    async def ahandle(self, event: Any, **kwargs: Any) -> None:
        self.handle(event)

    def span_enter(
        self, id_: str, bound_args: Any, instance: Any = None, parent_id: str | None = None, **kwargs: Any
    ) -> None:
        self._runs.begin(id_, parent_id, id_.rsplit("-", 5)[0])
        if isinstance(instance, (SubQuestionQueryEngine, MultiStepQueryEngine)):
            self._composing.append(id_)
        elif parent_id in self._composing and isinstance(instance, BaseSynthesizer):
            self._audit._composed.extend(node.node_id for node in _nodes_in(bound_args.arguments.get("nodes")))
        self._audit.learn(_nodes_in(list(bound_args.arguments.values())))

    def span_exit(self, id_: str, bound_args: Any, instance: Any = None, result: Any = None, **kwargs: Any) -> None:
        self._runs.end(id_)
        self._audit.learn(_nodes_in(result))

    def span_drop(self, id_: str, *args: Any, **kwargs: Any) -> None:
        self._runs.end(id_)

    def capture_propagation_context(self) -> dict[str, Any]:
        return {}

    def restore_propagation_context(self, context: dict[str, Any]) -> None:
        pass


class _Calls:
    """Shows audits the prompts of LLMs: while one listens, the methods of every class that defines them are wrapped.

    Not every LLM emits events, and what a handler of them raises stops nothing.
    """

    def __init__(self) -> None:
        self._audits: list[IsolationAudit] = []
        self._stock: dict[tuple[type, str], Any] = {}
        self._lock = threading.Lock()

    def start(self, audit: IsolationAudit) -> None:
        with self._lock:
            self._audits = [*self._audits, audit]
            if not self._stock:
                self._stock[LLM, "__init__"] = LLM.__dict__.get("__init__")
                LLM.__init__ = self._initialising(LLM.__init__)  # type: ignore[method-assign]
            self._wrap()

    def stop(self, audit: IsolationAudit) -> None:
        with self._lock:
            self._audits = [other for other in self._audits if other is not audit]
            while not self._audits and self._stock:
                (cls, name), method = self._stock.popitem()
                if method is None:
                    delattr(cls, name)
                else:
                    setattr(cls, name, method)

    def _wrap(self) -> None:
        for cls, name, method in methods_of(LLM, _METHODS.__contains__, but=FunctionCallingLLM):
            if (cls, name) not in self._stock:
                self._stock[cls, name] = method
                setattr(cls, name, self._around(method))

    def _initialising(self, init: Any) -> Any:
        @wraps(init)
        def around(llm: LLM, /, *args: Any, **kwargs: Any) -> None:
            init(llm, *args, **kwargs)
            with self._lock:
                if self._audits:  # its class may be new
                    self._wrap()

        return around

    def _around(self, method: Any) -> Any:
        @wraps(method)
        def around(llm: LLM, *args: Any, **kwargs: Any) -> Any:
            hosted = hosted_tools_of(llm, kwargs)
            for audit in self._audits:
                audit._look([*args, *kwargs.values()], llm, method.__name__, hosted)
            return method.__get__(llm, type(llm))(*args, **kwargs)

        return around


_CALLS = _Calls()


def _messages_of(prompt: Sequence[ChatMessage]) -> list[Message]:
    calls = [block for message in prompt for block in message.blocks if isinstance(block, ToolCallBlock)]
    names = {call.tool_call_id: call.tool_name for call in calls}
    found = []
    for message in prompt:
        is_result = message.role in (MessageRole.TOOL, MessageRole.FUNCTION)
        tool = names.get(message.additional_kwargs.get("tool_call_id"), "") if is_result else None
        found.append(Message(message.content or "", message.role == MessageRole.USER, tool))
    return found


def _root() -> Any:
    """Return the root dispatcher, to which all others pass their events on."""
    return instrumentation.get_dispatcher()  # type: ignore[attr-defined]


def _nodes_in(value: Any) -> list[BaseNode]:
    """Return the nodes in arguments, results and events, at any depth, as far as these are plain data."""
    found: list[BaseNode] = []
    waiting, seen = [(value, 0)], set[int]()
    while waiting and len(seen) < _MOST_PARTS:
        part, depth = waiting.pop()
        if part is None or isinstance(part, (str, bytes, int, float, bool)) or depth > _DEEPEST or id(part) in seen:
            continue
        seen.add(id(part))
        if isinstance(part, NodeWithScore):
            found.append(part.node)
        elif isinstance(part, BaseNode):
            found.append(part)
        else:
            waiting.extend((inner, depth + 1) for inner in _inside(part))
    return found


def _inside(part: Any) -> list[Any]:
    if isinstance(part, Mapping):
        return list(part.values())
    if isinstance(part, (list, tuple, set)):
        return list(part)
    if isinstance(part, BaseModel):  # events, tool outputs
        return [*vars(part).values(), *(part.__pydantic_private__ or {}).values()]
    return [getattr(part, name, None) for name in ("source_nodes", "sources", "raw_output", "kwargs")]
