"""LangChain: the documents chain against `batch` of prompt, model and parser, with tracers on both sides or none."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from langchain_core.documents import Document
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableConfig
from langchain_core.tracers.base import BaseTracer
from langchain_core.tracers.schemas import Run

from benchmarks.frameworks import side_by_side
from benchmarks.frameworks.side_by_side import CHOICES, METHODS, PASSAGES, QUESTION, Instant, Pair
from benchmarks.inference import Bench
from benchmarks.results import Ratio
from langchain_robustrag import create_robust_documents_chain

_PROMPT = ChatPromptTemplate.from_template("Answer from these notes: {context}\n\nQuestion: {input}")
_DOCUMENTS = [Document(text, metadata={"source": f"note-{number}.txt"}) for number, text in enumerate(PASSAGES)]
_INPUTS = [{"input": QUESTION, "context": text} for text in PASSAGES]


class _Model(BaseChatModel):
    """Answers at once, and without threads when it is awaited, as the models of partner packages do."""

    instant: Any

    @property
    def _llm_type(self) -> str:
        return "instant"

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        said = self.instant.said(messages[-1].text)
        return ChatResult(generations=[ChatGeneration(message=AIMessage(said))])

    async def _agenerate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        return self._generate(messages)


class _Tracer(BaseTracer):
    """Keeps the tree of runs, and sends it nowhere."""

    run_inline = True

    def _persist_run(self, run: Run) -> None:
        pass


def ratios(bench: Bench) -> list[Ratio]:
    """Synchronous and asynchronous, for every method that asks a model in words."""
    plain = [pair for method in METHODS for pair in pairs(method, traced=False)]
    return side_by_side.ratios(bench, [*plain, *pairs("keyword", traced=True)])


def pairs(method: str, *, traced: bool) -> Iterator[Pair]:
    """The chain synchronous and asynchronous, each with what it is compared with."""
    instant = Instant()
    model = _Model(instant=instant)
    chain = create_robust_documents_chain(
        model, _PROMPT, aggregation=method, **({"choices": CHOICES} if method == "voting" else {})
    )
    asked, own = {"input": QUESTION, "context": _DOCUMENTS}, _PROMPT | model | StrOutputParser()
    final = {"input": QUESTION, "context": "bo ek"} if method == "keyword" else None

    def config() -> RunnableConfig:
        return {"callbacks": [_Tracer()]} if traced else {}

    def batched() -> None:
        own.batch(_INPUTS, config())
        if final is not None:
            own.invoke(final, config())

    async def abatched() -> None:
        await own.abatch(_INPUTS, config())
        if final is not None:
            await own.ainvoke(final, config())

    what = f"LangChain {method}{', traced' if traced else ''}"
    yield Pair(f"{what}: invoke / batch", instant, lambda: chain.invoke(asked, config()), batched)
    yield Pair(f"{what}: ainvoke / abatch", instant, lambda: chain.ainvoke(asked, config()), abatched)
