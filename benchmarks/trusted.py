"""A trusted answer beside the framework's own chain or engine on the same model: whole, and to the first piece.

Without a folder of a model the model is one that only waits: 0.3 s, then a word every 20 ms, in wall time.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

from langchain_classic.chains.combine_documents import create_stuff_documents_chain
from langchain_core.documents import Document
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.prompts import ChatPromptTemplate
from llama_index.core.base.llms.types import ChatMessage, ChatResponse, CompletionResponse, LLMMetadata
from llama_index.core.llms import CustomLLM
from llama_index.core.llms.callbacks import llm_chat_callback
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode

from benchmarks.inference import Bench
from benchmarks.instant import QUESTION
from benchmarks.results import Ratio, Target, said
from langchain_robustrag import create_robust_documents_chain
from llamaindex_robustrag import RobustRAGQueryEngine

Pieces = Callable[[str], Iterator[str]]  # of the reply to a prompt
Asked = Callable[[], Iterator[Any]]  # starts an answer, and gives its pieces

_BOUND: dict[str, Target] = {"cpu": ("<=", 1.05), "cuda": ("<=", 1.05)}
_PROMPT = ChatPromptTemplate.from_template("Answer from these notes: {context}\n\nQuestion: {input}")
_FIRST, _NEXT = 0.3, 0.02  # seconds
_REPLY = "Bo Ek and his sons built the bridge in the spring of 1923"
_TEXTS = [f"Account {number}: {_REPLY}." for number in range(10)]
_TOKENS = 20


def ratios(bench: Bench) -> Iterator[Ratio]:
    """Yield the ratios of both frameworks."""
    waits = bench.folder is None
    pieces, clock = (_waiting, time.perf_counter) if waits else (_generated(bench), bench.clock.read)
    for framework, make in (("LangChain", langchain), ("LlamaIndex", llamaindex)):
        taken: list[list[tuple[float, float]]] = []
        for turn in range(bench.repeats + 1):
            asked = (QUESTION, _TEXTS) if waits else (bench.scene.question(turn), bench.scene.passages(turn))
            taken.append([_timed(ask, clock) for ask in make(pieces, *asked)])
        for at, what in enumerate(("trusted answer", "the same, to the first piece")):
            shares = tuple(ours[at] / theirs[at] for ours, theirs in taken[1:])
            yield said(Ratio(f"{framework}, {what} / stock", shares, _BOUND))


def _timed(ask: Asked, clock: Callable[[], float]) -> tuple[float, float]:
    """Return the seconds until an answer has ended, and until its first piece that is not empty."""
    start, first = clock(), 0.0
    for piece in ask():
        first = first or (clock() - start if piece else 0.0)
    return clock() - start, first


def langchain(pieces: Pieces, question: str, texts: list[str]) -> tuple[Asked, Asked]:
    """Return ours and LangChain's."""
    model, documents = _LangChainModel(pieces=pieces), [Document(text) for text in texts]
    ours = create_robust_documents_chain(model, _PROMPT, when_trusted_fails="abstain")
    stock = create_stuff_documents_chain(model, _PROMPT)
    asked = {"input": question, "context": documents}
    return lambda: ours.stream({**asked, "context": [], "trusted_context": documents}), lambda: stock.stream(asked)


def llamaindex(pieces: Pieces, question: str, texts: list[str]) -> tuple[Asked, Asked]:
    """Return ours and LlamaIndex's."""
    model = _LlamaIndexModel(pieces=pieces)
    ours = RobustRAGQueryEngine.from_args(
        _Found([]), model, trusted_retriever=_Found(texts), streaming=True, when_trusted_fails="abstain"
    )
    stock = RetrieverQueryEngine.from_args(_Found(texts), model, streaming=True)

    def asking(engine: Any) -> Asked:
        return lambda: engine.query(question).response_gen

    return asking(ours), asking(stock)


def _waiting(prompt: str) -> Iterator[str]:
    time.sleep(_FIRST)
    for word in _REPLY.split():
        yield f"{word} "
        time.sleep(_NEXT)


def _generated(bench: Bench) -> Pieces:
    """Stream plain transformers' greedy answers."""
    from transformers import TextIteratorStreamer

    def pieces(prompt: str) -> Iterator[str]:
        tokenizer = bench.tokenizer
        streamer: Any = TextIteratorStreamer(tokenizer, skip_prompt=True, skip_special_tokens=True)
        batch = tokenizer.apply_chat_template(
            [{"role": "user", "content": prompt}], add_generation_prompt=True, return_dict=True, return_tensors="pt"
        )
        lengths = {"min_new_tokens": _TOKENS, "max_new_tokens": _TOKENS}  # both write as many
        settings = {**batch, **lengths, "do_sample": False, "streamer": streamer}
        thread = threading.Thread(target=bench.network.generate, kwargs=settings)
        thread.start()
        yield from streamer
        thread.join()

    return pieces


class _LangChainModel(BaseChatModel):
    """A model that streams, as the models of partner packages do."""

    pieces: Any

    @property
    def _llm_type(self) -> str:
        return "pieces"

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=AIMessage("".join(self.pieces(messages[-1].text))))])

    def _stream(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> Iterator[ChatGenerationChunk]:
        for text in self.pieces(messages[-1].text):
            yield ChatGenerationChunk(message=AIMessageChunk(content=text))


class _LlamaIndexModel(CustomLLM):
    """A chat model that streams."""

    pieces: Any

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(is_chat_model=True, context_window=8000, model_name="pieces")

    @llm_chat_callback()
    def chat(self, messages: list[ChatMessage], **kwargs: Any) -> ChatResponse:
        return ChatResponse(message=ChatMessage(role="assistant", content="".join(self._said(messages))))

    @llm_chat_callback()
    def stream_chat(self, messages: list[ChatMessage], **kwargs: Any) -> Any:
        def responses() -> Iterator[ChatResponse]:
            text = ""
            for piece in self._said(messages):
                text += piece
                yield ChatResponse(message=ChatMessage(role="assistant", content=text), delta=piece)

        return responses()

    def _said(self, messages: list[ChatMessage]) -> Iterator[str]:
        yield from self.pieces("\n\n".join(message.content or "" for message in messages))

    def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        raise NotImplementedError

    def stream_complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> Any:
        raise NotImplementedError


class _Found(BaseRetriever):
    """Finds the same texts every time, each of another document."""

    def __init__(self, texts: list[str]) -> None:
        super().__init__()
        self._nodes = [NodeWithScore(node=TextNode(text=text), score=1.0) for text in texts]

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return self._nodes
