"""Compares our chain or synthesizer with the framework's own calls on the same instant model, in turns.

LangChain: the documents chain against `batch` of prompt, model and parser. LlamaIndex: a query engine with our
synthesizer against the same engine with its own `Accumulate`. Keyword aggregation asks once more in the end, and so
does what it is compared with.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from langchain_core.documents import Document
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.prompts import ChatPromptTemplate
from llama_index.core.base.llms.types import ChatMessage, ChatResponse, CompletionResponse, LLMMetadata, MessageRole
from llama_index.core.llms import CustomLLM
from llama_index.core.llms.callbacks import llm_chat_callback
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.response_synthesizers import Accumulate
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeRelationship, NodeWithScore, QueryBundle, RelatedNodeInfo, TextNode

from benchmarks.inference import Bench
from benchmarks.instant import CHOICES, METHODS, PASSAGES, QUESTION, Instant, milliseconds, names
from benchmarks.results import Ratio, Target, said
from langchain_robustrag import create_robust_documents_chain
from llamaindex_robustrag import RobustRAGSynthesizer

_BOUND: dict[str, Target] = {"cpu": ("<=", 1.5), "cuda": ("<=", 1.5)}
_PROMPT = ChatPromptTemplate.from_template("Answer from these notes: {context}\n\nQuestion: {input}")
_DOCUMENTS = [Document(text, metadata={"source": f"note-{number}.txt"}) for number, text in enumerate(PASSAGES)]
_INPUTS = [{"input": QUESTION, "context": text} for text in PASSAGES]


@dataclass(frozen=True)
class Pair:
    """A call of ours and the call that it is compared with; both synchronous or both asynchronous.

    Attributes:
        name: what is compared.
        instant: what both ask.
        ours: answers.
        theirs: makes the same calls.
    """

    name: str
    instant: Instant
    ours: Callable[[], object]
    theirs: Callable[[], object]


def ratios(bench: Bench) -> Iterator[Ratio]:
    """Yield the ratios of each pair with ten different, unseen replies, and with ten equal ones."""
    fresh = names()
    for pair in [pair for method in METHODS for pairs in (langchain, llamaindex) for pair in pairs(method)]:
        for replies, equal in (("ten different replies", False), ("ten equal ones", True)):
            both = [pair.ours, pair.theirs]
            rounds = [milliseconds(pair.instant, both, fresh, equal=equal) for _ in range(max(3, bench.repeats))]
            ours, theirs = (statistics.median(taken) for taken in zip(*rounds, strict=True))
            note = f"{ours:.1f} ms of computing per question / {theirs:.1f} ms"
            yield said(Ratio(f"{pair.name}, {replies}", tuple(a / b for a, b in rounds), _BOUND, note))


class _LangChainModel(BaseChatModel):
    """A model that answers at once, and without threads when awaited, as the models of partner packages do."""

    instant: Any

    @property
    def _llm_type(self) -> str:
        return "instant"

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=AIMessage(self.instant.said(messages[-1].text)))])

    async def _agenerate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        return self._generate(messages)


def langchain(method: str) -> Iterator[Pair]:
    """Pair the chain with LangChain's own calls, synchronous and asynchronous."""
    instant = Instant()
    model = _LangChainModel(instant=instant)
    settings: dict[str, Any] = {"choices": CHOICES} if method == "voting" else {}
    chain = create_robust_documents_chain(model, _PROMPT, method=method, **settings)
    asked, own = {"input": QUESTION, "context": _DOCUMENTS}, _PROMPT | model | StrOutputParser()
    final = {"input": QUESTION, "context": "bo ek"} if method == "keyword" else None

    def batched() -> None:
        own.batch(_INPUTS)
        if final is not None:
            own.invoke(final)

    async def abatched() -> None:
        await own.abatch(_INPUTS)
        if final is not None:
            await own.ainvoke(final)

    yield Pair(f"LangChain {method}: invoke / batch", instant, lambda: chain.invoke(asked), batched)
    yield Pair(f"LangChain {method}: ainvoke / abatch", instant, lambda: chain.ainvoke(asked), abatched)


class _LlamaIndexModel(CustomLLM):
    """A chat model that answers at once."""

    instant: Any

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(is_chat_model=True, context_window=4000, model_name="instant")

    def _reply(self, messages: list[ChatMessage]) -> ChatResponse:
        content = self.instant.said(messages[-1].content or "")
        return ChatResponse(message=ChatMessage(role=MessageRole.ASSISTANT, content=content))

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
    """A retriever that finds the same nodes every time, each of another document."""

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        sources = [{NodeRelationship.SOURCE: RelatedNodeInfo(node_id=f"note-{i}")} for i in range(len(PASSAGES))]
        nodes = [TextNode(text=text, relationships=one) for text, one in zip(PASSAGES, sources, strict=True)]
        return [NodeWithScore(node=node, score=1 - i / 100) for i, node in enumerate(nodes)]


def llamaindex(method: str) -> Iterator[Pair]:
    """Pair the engine with LlamaIndex's own calls, synchronous and asynchronous."""
    instant = Instant()
    model = _LlamaIndexModel(instant=instant)
    settings: dict[str, Any] = {"choices": CHOICES} if method == "voting" else {}
    ours = RetrieverQueryEngine(_Found(), RobustRAGSynthesizer(llm=model, method=method, **settings))
    theirs = RetrieverQueryEngine(_Found(), Accumulate(llm=model))
    final = [ChatMessage(role=MessageRole.USER, content="keywords: bo ek")] if method == "keyword" else None

    def accumulated() -> None:
        theirs.query(QUESTION)
        if final is not None:
            model.chat(final)

    async def aaccumulated() -> None:
        await theirs.aquery(QUESTION)
        if final is not None:
            await model.achat(final)

    yield Pair(f"LlamaIndex {method}: query / Accumulate", instant, lambda: ours.query(QUESTION), accumulated)
    yield Pair(f"LlamaIndex {method}: aquery / Accumulate", instant, lambda: ours.aquery(QUESTION), aaccumulated)
