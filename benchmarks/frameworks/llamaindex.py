"""LlamaIndex: a query engine with our synthesizer against the same engine with its own `Accumulate` and one more call.

Spans, events and callbacks are listened to on both sides.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from llama_index.core.base.llms.types import ChatMessage, ChatResponse, CompletionResponse, LLMMetadata, MessageRole
from llama_index.core.callbacks import CallbackManager
from llama_index.core.callbacks.base_handler import BaseCallbackHandler
from llama_index.core.instrumentation import root_dispatcher
from llama_index.core.instrumentation.event_handlers import BaseEventHandler
from llama_index.core.instrumentation.span_handlers import SimpleSpanHandler
from llama_index.core.llms import CustomLLM
from llama_index.core.llms.callbacks import llm_chat_callback
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.response_synthesizers import Accumulate
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeRelationship, NodeWithScore, QueryBundle, RelatedNodeInfo, TextNode

from benchmarks.frameworks import side_by_side
from benchmarks.frameworks.side_by_side import CHOICES, METHODS, PASSAGES, QUESTION, Instant, Pair
from benchmarks.inference import Bench
from benchmarks.results import Ratio
from llamaindex_robustrag import RobustRAGSynthesizer


class _Model(CustomLLM):
    """Chats, and answers at once."""

    instant: Any

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(is_chat_model=True, context_window=4000, model_name="instant")

    def _reply(self, messages: list[ChatMessage]) -> ChatResponse:
        said = self.instant.said(messages[-1].content or "")
        return ChatResponse(message=ChatMessage(role=MessageRole.ASSISTANT, content=said))

    @llm_chat_callback()
    def chat(self, messages: list[ChatMessage], **kwargs: Any) -> ChatResponse:
        return self._reply(messages)

    @llm_chat_callback()
    async def achat(self, messages: list[ChatMessage], **kwargs: Any) -> ChatResponse:
        return self._reply(messages)

    def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        raise NotImplementedError

    def stream_complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> Any:
        raise NotImplementedError


class _Found(BaseRetriever):
    """Finds the same nodes every time, each of another document."""

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return [
            NodeWithScore(
                node=TextNode(text=text, relationships={NodeRelationship.SOURCE: RelatedNodeInfo(node_id=f"note-{i}")}),
                score=1 - i / 100,
            )
            for i, text in enumerate(PASSAGES)
        ]


class _Events(BaseEventHandler):
    """Hears everything that the instrumentation has to say, and keeps none of it."""

    def handle(self, event: Any, **kwargs: Any) -> None:
        pass


class _Callbacks(BaseCallbackHandler):
    """The same of the older callbacks."""

    def on_event_start(self, *args: Any, **kwargs: Any) -> str:
        return ""

    def on_event_end(self, *args: Any, **kwargs: Any) -> None:
        pass

    def start_trace(self, trace_id: str | None = None) -> None:
        pass

    def end_trace(self, trace_id: str | None = None, trace_map: Any = None) -> None:
        pass


def ratios(bench: Bench) -> list[Ratio]:
    """Synchronous and asynchronous, for every method that asks a model in words."""
    spans, events = root_dispatcher.span_handlers, root_dispatcher.event_handlers
    try:
        found = side_by_side.ratios(bench, [pair for method in METHODS for pair in pairs(method, traced=False)])
        root_dispatcher.span_handlers, root_dispatcher.event_handlers = [SimpleSpanHandler()], [_Events()]
        return found + side_by_side.ratios(bench, list(pairs("keyword", traced=True)))
    finally:
        root_dispatcher.span_handlers, root_dispatcher.event_handlers = spans, events


def pairs(method: str, *, traced: bool) -> Iterator[Pair]:
    """The engine synchronous and asynchronous, each with what it is compared with."""
    instant, callbacks = Instant(), CallbackManager([_Callbacks([], [])] if traced else [])
    model = _Model(instant=instant, callback_manager=callbacks)
    settings: dict[str, Any] = {"choices": CHOICES} if method == "voting" else {}
    robust = RobustRAGSynthesizer(llm=model, aggregation=method, callback_manager=callbacks, **settings)
    ours = RetrieverQueryEngine(_Found(), robust, callback_manager=callbacks)
    theirs = RetrieverQueryEngine(
        _Found(), Accumulate(llm=model, callback_manager=callbacks), callback_manager=callbacks
    )
    final = [ChatMessage(role=MessageRole.USER, content="keywords: bo ek")] if method == "keyword" else None

    def accumulated() -> None:
        theirs.query(QUESTION)
        if final is not None:
            model.chat(final)

    async def aaccumulated() -> None:
        await theirs.aquery(QUESTION)
        if final is not None:
            await model.achat(final)

    what = f"LlamaIndex {method}{', traced' if traced else ''}"
    yield Pair(f"{what}: query / Accumulate", instant, lambda: ours.query(QUESTION), accumulated)
    yield Pair(f"{what}: aquery / Accumulate", instant, lambda: ours.aquery(QUESTION), aaccumulated)
