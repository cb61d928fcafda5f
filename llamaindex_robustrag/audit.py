"""The audit at run time: finds prompts of a LlamaIndex program that hold texts of several sources."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from functools import wraps
from inspect import signature
from typing import Any

from llama_index.core import instrumentation
from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.bridge.pydantic import BaseModel
from llama_index.core.callbacks import CallbackManager, CBEventType, EventPayload
from llama_index.core.callbacks.base_handler import BaseCallbackHandler
from llama_index.core.instrumentation.events.llm import LLMChatStartEvent, LLMCompletionStartEvent
from llama_index.core.instrumentation.span import active_span_id
from llama_index.core.llms import LLM
from llama_index.core.llms.function_calling import FunctionCallingLLM
from llama_index.core.query_engine import MultiStepQueryEngine, SubQuestionQueryEngine
from llama_index.core.response_synthesizers import BaseSynthesizer
from llama_index.core.schema import BaseNode, MetadataMode, NodeWithScore

from llamaindex_robustrag.grouping import source_of
from llamaindex_robustrag.llm_traits import hosted_tools
from llamaindex_robustrag.prompt_text import as_messages
from llamaindex_robustrag.reports import RobustAnswerEvent
from robustrag_integrations.abstention import is_abstention
from robustrag_integrations.audit.checking import Replaced, having, methods_of, replace_methods
from robustrag_integrations.audit.findings import Finding
from robustrag_integrations.audit.hosted import hosted_tool
from robustrag_integrations.audit.prompts import Audit, On, is_agreed, texts_in
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
_METHODS = tuple(
    f"{way}{kind}" for way in ("", "a", "stream_", "astream_") for kind in ("chat", "complete", "chat_with_tools")
)
_ASKED: ContextVar[str | None] = ContextVar("robustrag_asked", default=None)


def asked(prompt: str) -> AbstractContextManager[None]:
    """Mark LLM calls in this context as asking this prompt of ours, with whatever the LLM adds around it."""
    return having(_ASKED, prompt)


class IsolationAudit(BaseCallbackHandler):
    """Checks every prompt of every LLM: no prompt may hold texts of two groups, or an answer of one source.

    The latter is a `RobustAnswer` on which no two sources agree, or an abstention that quotes sources: another model
    obeys it like any text. What was retrieved is learnt from the arguments and results of
    whatever LlamaIndex traces (retrievers, synthesizers, engines, tools, steps of workflows). It sees text of 30
    characters or more as it was retrieved, up to spacing and JSON escapes; several copies of one text count as one
    group. What it does not see: text that a function fetches and joins by itself (tell it with `learn`), text that was
    reworded, translated or cut shorter, and prompts of what is no LlamaIndex LLM.

    Args:
        on: `"log"` warns of a finding; `"raise"` raises an `UndefendedError`, so that the LLM is never asked. A
            document that quotes a prompt of yours can then stop an answer.

    Examples:
        >>> audit = IsolationAudit(on="raise").attach()
        >>> engine.query("Who won?")
    """

    def __init__(self, on: On = "log") -> None:
        super().__init__([], [])
        self._audit = Audit(on, FIX)
        self._spans: OrderedDict[str, str | None] = OrderedDict()  # open ones, each with the one around it
        self._composing: OrderedDict[str, None] = OrderedDict()  # calls that make nodes of answers
        self._composed: OrderedDict[str, None] = OrderedDict()  # the ids of these nodes
        self._managers: list[CallbackManager] = []

    def __repr__(self) -> str:
        return f"IsolationAudit(on={self._audit.on!r}, findings={len(self.findings)})"

    @property
    def findings(self) -> list[Finding]:
        """The findings so far, each place once."""
        return self._audit.findings

    def learn(self, nodes: Iterable[NodeWithScore | BaseNode]) -> None:
        """Register nodes that no event shows."""
        found = [n.node if isinstance(n, NodeWithScore) else n for n in nodes]
        self._audit.learn(_passage(node) for node in found if node.node_id not in self._composed)

    def attach(self) -> IsolationAudit:
        """Start listening to all of LlamaIndex in this process."""
        root = _root()
        root.add_event_handler(self)
        root.add_span_handler(self)
        _CALLS.start(self)
        return self

    def detach(self) -> None:
        """Stop listening."""
        root = _root()
        lists: list[list[Any]] = [root.event_handlers, root.span_handlers, *(m.handlers for m in self._managers)]
        for handlers in lists:
            handlers[:] = [h for h in handlers if h is not self]
        self._managers.clear()
        _CALLS.stop(self)

    # Instrumentation swallows exceptions of handlers, so it can inform the audit, and stop nothing.

    def handle(self, event: Any, **kwargs: Any) -> None:
        """Check the prompt, or register the nodes, of an event."""
        if isinstance(event, LLMChatStartEvent):
            self._look(event.messages, event.span_id, event.model_dict)
        elif isinstance(event, LLMCompletionStartEvent):
            self._look([event.prompt], event.span_id, event.model_dict)
        elif isinstance(event, RobustAnswerEvent):
            self._release(event.report)
        else:
            self.learn(_nodes_in([getattr(event, name, None) for name in ("nodes", "response")]))

    async def ahandle(self, event: Any, **kwargs: Any) -> None:
        """Do as `handle`, in an event loop."""
        self.handle(event)

    def span_enter(
        self, id_: str, bound_args: Any, instance: Any = None, parent_id: str | None = None, **kwargs: Any
    ) -> None:
        """Note the start of a call, and register the nodes in its arguments."""
        self._spans[id_] = parent_id
        if len(self._spans) > _MOST_SPANS:
            self._spans.popitem(last=False)
        if isinstance(instance, (SubQuestionQueryEngine, MultiStepQueryEngine)):
            _keep(self._composing, [id_])
        elif parent_id in self._composing and isinstance(instance, BaseSynthesizer):
            _keep(self._composed, [node.node_id for node in _nodes_in(bound_args.arguments.get("nodes"))])
        self.learn(_nodes_in(list(bound_args.arguments.values())))
        if self._audit.on == "raise" and isinstance(instance, LLM):
            self._watch(instance)

    def span_exit(self, id_: str, bound_args: Any, instance: Any = None, result: Any = None, **kwargs: Any) -> None:
        """Note the end of a call, and register the nodes in its result."""
        self._spans.pop(id_, None)
        self.learn(_nodes_in(result))

    def span_drop(self, id_: str, *args: Any, **kwargs: Any) -> None:
        """Forget a call that failed."""
        self._spans.pop(id_, None)

    def capture_propagation_context(self) -> dict[str, Any]:
        """Return nothing to pass on to other processes."""
        return {}

    def restore_propagation_context(self, context: dict[str, Any]) -> None:
        """Take nothing from other processes."""

    # Callback managers propagate exceptions of handlers, right before the LLM is called.

    def on_event_start(
        self,
        event_type: CBEventType,
        payload: dict[str, Any] | None = None,
        event_id: str = "",
        parent_id: str = "",
        **kwargs: Any,
    ) -> str:
        """Check the prompt of an LLM that is about to be called."""
        if event_type == CBEventType.LLM and payload is not None:
            shown = payload.get(EventPayload.MESSAGES) or [payload.get(EventPayload.PROMPT) or ""]
            self._look(shown, active_span_id.get(), payload.get(EventPayload.SERIALIZED) or {})
        return event_id

    def on_event_end(
        self, event_type: CBEventType, payload: dict[str, Any] | None = None, event_id: str = "", **kwargs: Any
    ) -> None:
        """Register the nodes that were retrieved."""
        self.learn(_nodes_in(payload))

    def start_trace(self, trace_id: str | None = None) -> None:
        """Do nothing: traces are followed by their spans."""

    def end_trace(self, trace_id: str | None = None, trace_map: dict[str, list[str]] | None = None) -> None:
        """Do nothing: traces are followed by their spans."""

    def _release(self, report: Mapping[str, Any]) -> None:
        """Register an answer, by its report; nothing of a document is in one from the conversation alone."""
        text, evidence = str(report.get("text") or ""), report.get("evidence") or {}
        if evidence.get("answered_from") == "conversation":
            return
        if not report.get("abstained"):
            self._audit.release(text, agreed=is_agreed(report))
        elif not is_abstention(text):
            self._audit.release(text, agreed=False)

    def look(self, prompt: Sequence[ChatMessage | str], method: str, hosted: Sequence[str] = ()) -> None:
        """Check a call that may emit no event.

        Args:
            prompt: what the LLM is shown.
            method: class and method, such as `OpenAI.chat`.
            hosted: the tools that the LLM's provider runs.
        """
        if hosted:
            self._audit.add(hosted_tool(hosted, method, method.partition(".")[0], _NO_HOSTED))
        self._look(prompt, active_span_id.get(), {}, method)

    def _watch(self, llm: LLM) -> None:
        """Listen to an LLM's callbacks, too; only there can a prompt be stopped."""
        manager = llm.callback_manager
        if isinstance(manager, CallbackManager) and not any(h is self for h in manager.handlers):
            manager.add_handler(self)
            self._managers.append(manager)

    def _look(
        self, prompt: Sequence[ChatMessage | str], span: str | None, model: Mapping[str, Any], method: str = ""
    ) -> None:
        own = _ASKED.get()
        pieces = None if own is None else [str(m.content or "") for m in as_messages(own, ())]
        names = [method] if method else []
        while span is not None and len(names) < 100:
            names.append(span.rsplit("-", 5)[0])
            span = self._spans.get(span)
        component = names[0].partition(".")[0] if names else str(model.get("class_name", "LLM"))
        shown = texts_in([m.model_dump() if isinstance(m, ChatMessage) else m for m in prompt])
        self._audit.look(shown, " > ".join(reversed(names)), component, pieces)


@contextmanager
def audit_isolation(on: On = "log") -> Iterator[IsolationAudit]:
    """Check every prompt of every LlamaIndex LLM in this process while the block runs.

    Args:
        on: see `IsolationAudit`.

    Examples:
        >>> with audit_isolation() as audit:
        ...     engine.query("Who won?")
        >>> assert not audit.findings
    """
    audit = IsolationAudit(on).attach()
    try:
        yield audit
    finally:
        audit.detach()


class _Calls:
    """Shows audits the prompts of LLMs whose methods emit no event: those of many programs' own.

    While an audit listens, the methods are wrapped in every class that defines them.
    """

    def __init__(self) -> None:
        self._audits: list[IsolationAudit] = []
        self._stock: list[Replaced] = []
        self._lock = threading.Lock()

    def start(self, audit: IsolationAudit) -> None:
        """Show an audit all prompts."""
        with self._lock:
            self._audits = [*self._audits, audit]
            if not self._stock:
                self._stock = methods_of(LLM, _METHODS.__contains__, but=FunctionCallingLLM)
                replace_methods(self._stock, self._around)

    def stop(self, audit: IsolationAudit) -> None:
        """Show an audit nothing more."""
        with self._lock:
            self._audits = [other for other in self._audits if other is not audit]
            if not self._audits:
                replace_methods(self._stock)
                self._stock = []

    def _around(self, method: Any) -> Any:
        @wraps(method)
        def around(llm: LLM, *args: Any, **kwargs: Any) -> Any:
            bound = method.__get__(llm, type(llm))
            given = signature(bound).bind(*args, **kwargs).arguments
            call = {**given, **given.get("kwargs", {})}
            hosted = hosted_tools(llm, call)
            for audit in self._audits:
                audit.look(_shown(call), f"{type(llm).__name__}.{method.__name__}", hosted)
            return bound(*args, **kwargs)

        return around


_CALLS = _Calls()


def _shown(arguments: Mapping[str, Any]) -> list[ChatMessage | str]:
    """Return the messages and texts in the arguments of a call of an LLM."""
    given = [arguments.get(name) for name in ("chat_history", "messages", "user_msg", "prompt")]
    return [part for value in given for part in (value if isinstance(value, (list, tuple)) else [value]) if part]


def _root() -> Any:
    """Return the root dispatcher, to which all others pass their events on."""
    return instrumentation.get_dispatcher()  # type: ignore[attr-defined]


def _keep(known: OrderedDict[str, None], names: Iterable[str]) -> None:
    known.update(dict.fromkeys(names))
    while len(known) > _MOST_SPANS:
        known.popitem(last=False)


def _passage(node: BaseNode) -> Passage:
    return Passage(node.get_content(MetadataMode.LLM) or "", metadata=node.metadata, document_id=source_of(node))


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
