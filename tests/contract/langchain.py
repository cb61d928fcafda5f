"""LangChain: a retrieval chain over a chat model, or over a model of texts."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.language_models import BaseChatModel, BaseLLM
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.outputs import (
    ChatGeneration,
    ChatGenerationChunk,
    ChatResult,
    Generation,
    GenerationChunk,
    LLMResult,
)
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever

from langchain_robustrag import CallOptions, create_robust_retrieval_chain
from robustrag_integrations import Passage
from tests.contract.drivers import Driver, Engine, Said, Template
from tests.contract.script import QUESTION, Script, Words, pieces_of


def told(said: Words) -> dict[str, Any]:
    """What a model tells of a reply besides its text."""
    metadata: dict[str, Any] = {"finish_reason": said.finish}
    if said.logprob is not None:
        metadata["logprobs"] = {"content": [{"token": t, "logprob": said.logprob} for t in "ab"]}
    return metadata


def shown(messages: list[BaseMessage]) -> str:
    return "\n".join(str(message.content) for message in messages)


class Chat(BaseChatModel):
    """Plays a script."""

    script: Any
    temperature: float | None = 0.0

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def _message(self, said: Words) -> ChatResult:
        blocks: Any = [{"type": "thinking", "thinking": said.reasoning}, {"type": "text", "text": said.text}]
        message = AIMessage(blocks if said.reasoning else said.text, response_metadata=told(said))
        return ChatResult(generations=[ChatGeneration(message=message)])

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        return self._message(self.script.reply(shown(messages)))

    async def _agenerate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        return self._message(await self.script.areply(shown(messages)))

    def _chunks(self, said: Words) -> Iterator[ChatGenerationChunk]:
        for word in pieces_of(said.reasoning):
            yield ChatGenerationChunk(message=AIMessageChunk([{"type": "thinking", "thinking": word, "index": 0}]))
        for word in pieces_of(said.text):
            piece: Any = [{"type": "text", "text": word, "index": 1}]
            yield ChatGenerationChunk(message=AIMessageChunk(piece if said.reasoning else word))
        yield ChatGenerationChunk(message=AIMessageChunk("", response_metadata=told(said)))

    def _stream(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> Iterator[ChatGenerationChunk]:
        yield from self._chunks(self.script.reply(shown(messages)))

    async def _astream(
        self, messages: list[BaseMessage], *args: Any, **kwargs: Any
    ) -> AsyncIterator[ChatGenerationChunk]:
        for chunk in self._chunks(await self.script.areply(shown(messages))):
            yield chunk


class Patient(Chat):
    """Tries again by itself, as it says."""

    max_retries: int = 2


class Text(BaseLLM):
    """Plays a script as a model of texts without asynchronous calls of its own."""

    script: Any
    temperature: float | None = 0.0

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def _generate(self, prompts: list[str], *args: Any, **kwargs: Any) -> LLMResult:
        said = [self.script.reply(prompt) for prompt in prompts]
        return LLMResult(generations=[[Generation(text=one.text, generation_info=told(one))] for one in said])

    def _stream(self, prompt: str, *args: Any, **kwargs: Any) -> Iterator[GenerationChunk]:
        said = self.script.reply(prompt)
        yield from (GenerationChunk(text=piece) for piece in pieces_of(said.text))
        yield GenerationChunk(text="", generation_info=told(said))


class Raw(BaseChatModel):
    """Replies with messages as they are."""

    reply: Callable[[str], AIMessage]

    @property
    def _llm_type(self) -> str:
        return "raw"

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=self.reply(shown(messages)))])


class Letters(Embeddings):
    """A text is near the query when it has its letters: deterministic, and the nearer the more it repeats it."""

    def embed_query(self, text: str) -> list[float]:
        return [float(text.lower().count(c)) + 0.01 for c in "abcdefghijklmnopqrstuvwxyz"]

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [self.embed_query(text) for text in texts]


class Found(BaseRetriever):
    """Finds the same documents for every question, or fails."""

    documents: list[Any]
    error: Any = None
    asked: list[str] = []  # noqa: RUF012 - pydantic copies it

    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        self.asked.append(query)
        if self.error is not None:
            raise self.error
        return list(self.documents)


def document_of(passage: Passage) -> Document:
    source = {} if passage.origin is None else {"source": passage.origin}
    return Document(passage.text, id=passage.id, metadata={**source, **passage.metadata})


class LangChain(Driver):
    name = "langchain"

    def model(self, script: Script, **fields: Any) -> Any:
        return (Patient if "max_retries" in fields else Chat)(script=script, **fields)

    def served(self, url: str, **fields: Any) -> Any:
        client = pytest.importorskip("langchain_openai", reason="needs its client of OpenAI's API")
        given = {"model": "m", "api_key": "none", "temperature": 0, "max_retries": 0, "timeout": 120, **fields}
        return client.ChatOpenAI(base_url=url, **given)

    def raw(self, reply: Callable[[str], Any]) -> Any:
        return Raw(reply=reply)

    def local(self, folder: Any, max_new_tokens: int = 16, sample: bool = False) -> Any:
        from langchain_huggingface import HuggingFacePipeline
        from transformers import AutoModelForCausalLM, AutoTokenizer, pipeline

        model = AutoModelForCausalLM.from_pretrained(folder, dtype="float32")
        tokenizer = AutoTokenizer.from_pretrained(folder)
        tokenizer.chat_template = "{% for m in messages %}{{ m['content'] }}{% endfor %}"
        given = {"max_new_tokens": max_new_tokens, "do_sample": sample}
        return HuggingFacePipeline(pipeline=pipeline("text-generation", model=model, tokenizer=tokenizer, **given))

    def template(self, messages: Template) -> Any:
        return ChatPromptTemplate.from_messages(
            [(role, text.replace("{question}", "{input}")) for role, text in messages]
        )

    def calls(self, workers: int | None = None, **options: Any) -> CallOptions:
        return CallOptions(**({} if workers is None else {"max_concurrency": workers}), **options)

    def retriever(self, found: Sequence[Any] | Exception) -> Found:
        if isinstance(found, Exception):
            return Found(documents=[], error=found)
        return Found(documents=[document_of(p) if isinstance(p, Passage) else p for p in found])

    def engine(self, model: Any, found: Sequence[Passage], template: Template | None = None, **settings: Any) -> Engine:
        retriever = settings.pop("retriever", None) or self.retriever(found)
        given = self._settings(settings, {"schema": "output_schema"})
        prompt = None if template is None else self.template(template)
        return Chain(create_robust_retrieval_chain(retriever, self._model_of(model), prompt, **given))


class Completions(LangChain):
    name = "langchain completions"
    blocking = True
    chat = False

    def model(self, script: Script, **fields: Any) -> Any:
        return Text(script=script, **fields)


class Chain(Engine):
    def __init__(self, made: Any) -> None:
        self.made = made
        self._last: Any = {}

    def ask(self, question: str = QUESTION, **more: Any) -> Said:
        return self._said(self.made.invoke({"input": question, **more}))

    async def aask(self, question: str = QUESTION, **more: Any) -> Said:
        return self._said(await self.made.ainvoke({"input": question, **more}))

    def stream(self, question: str = QUESTION, **more: Any) -> Iterator[str]:
        self._last = {}
        for part in self.made.stream({"input": question, **more}):
            yield from self._pieces(part)

    async def astream(self, question: str = QUESTION, **more: Any) -> AsyncIterator[str]:
        self._last = {}
        async for part in self.made.astream({"input": question, **more}):
            for piece in self._pieces(part):
                yield piece

    def _pieces(self, part: dict[str, Any]) -> list[Any]:
        self._last = self._last + part if self._last else part
        return [part["answer"]] if "answer" in part else []

    def streamed(self, pieces: list[Any]) -> Said:
        return self._said({**self._last, "answer": None}, pieces)

    def _said(self, found: dict[str, Any], pieces: list[Any] | None = None) -> Said:
        given = [found["answer"]] if pieces is None else pieces
        return Said(given, found["robustness"], [d.page_content for d in found["context"]])
