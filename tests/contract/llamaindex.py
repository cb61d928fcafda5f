"""LlamaIndex: a query engine over a chat model with asynchronous calls, or over a completion model without."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from typing import Any

import pytest
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.base.llms import types
from llama_index.core.base.llms.types import ChatMessage, ChatResponse, CompletionResponse, LLMMetadata, TextBlock
from llama_index.core.llms import CustomLLM
from llama_index.core.llms.callbacks import llm_chat_callback, llm_completion_callback
from llama_index.core.prompts import ChatPromptTemplate
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode

from llamaindex_robustrag import CallOptions, RobustRAGQueryEngine, robust_answer
from robustrag_integrations import Passage
from tests.contract.drivers import Driver, Engine, Said, Template
from tests.contract.script import QUESTION, Script, Words, pieces_of

NAMES = {"{context}": "{context_str}", "{question}": "{query_str}", "{choices}": "{choices_str}"}


def told(said: Words) -> dict[str, Any]:
    """What a client tells of a reply besides its text."""
    choice: dict[str, Any] = {"finish_reason": said.finish}
    if said.logprob is not None:
        choice["logprobs"] = {"content": [{"token": t, "logprob": said.logprob} for t in "ab"]}
    return {"choices": [choice]}


class Text(CustomLLM):
    """Plays a script as a completion model without asynchronous calls of its own."""

    script: Any
    chat_model: bool = False
    window: int = 4000
    temperature: float | None = 0.0
    max_retries: int = 0

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(
            context_window=self.window, num_output=64, model_name="scripted", is_chat_model=self.chat_model
        )

    @llm_completion_callback()
    def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        said = self.script.reply(prompt)
        return CompletionResponse(text=said.text, raw=told(said))

    @llm_completion_callback()
    def stream_complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> Iterator[CompletionResponse]:
        said, text = self.script.reply(prompt), ""
        for piece in pieces_of(said.text):
            text += piece
            yield CompletionResponse(text=text, delta=piece, raw=told(said))


def message(said: Words, reasoning: str, text: str) -> ChatMessage:
    thinking = [types.ThinkingBlock(content=reasoning)] if reasoning else []
    return ChatMessage(role="assistant", blocks=[*thinking, TextBlock(text=text)])


class Chat(Text):
    """Plays a script as a chat model with asynchronous calls of its own."""

    chat_model: bool = True

    @llm_chat_callback()
    def chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponse:
        return self._whole(self.script.reply(_shown(messages)))

    @llm_chat_callback()
    async def achat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponse:
        return self._whole(await self.script.areply(_shown(messages)))

    @llm_chat_callback()
    def stream_chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> Iterator[ChatResponse]:
        return self._parts(self.script.reply(_shown(messages)))

    @llm_chat_callback()
    async def astream_chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> AsyncIterator[ChatResponse]:
        async def parts() -> AsyncIterator[ChatResponse]:
            for part in self._parts(await self.script.areply(_shown(messages))):
                yield part

        return parts()

    def _whole(self, said: Words) -> ChatResponse:
        return ChatResponse(message=message(said, said.reasoning, said.text), raw=told(said))

    def _parts(self, said: Words) -> Iterator[ChatResponse]:
        trace = text = ""
        for piece in pieces_of(said.reasoning):
            trace += piece
            yield ChatResponse(message=message(said, trace, ""), delta=piece)
        for piece in pieces_of(said.text):
            text += piece
            yield ChatResponse(message=message(said, trace, text), delta=piece)
        yield ChatResponse(message=message(said, trace, text), delta="", raw=told(said))


class Raw(Text):
    """Replies with objects as they are."""

    chat_model: bool = True
    script: Any = None
    reply: Callable[[str], Any]

    @llm_chat_callback()
    def chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponse:
        return self.reply(_shown(messages))


def _shown(messages: Sequence[ChatMessage]) -> str:
    return "\n".join(m.content or "" for m in messages)


class Found(BaseRetriever):
    """Finds the same nodes for every question, or fails."""

    def __init__(self, nodes: Any) -> None:
        super().__init__()
        self.nodes = nodes
        self.asked: list[str] = []

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        self.asked.append(query_bundle.query_str)
        if isinstance(self.nodes, Exception):
            raise self.nodes
        return list(self.nodes)


def node_of(passage: Passage) -> NodeWithScore:
    source = {} if passage.origin is None else {"source": passage.origin}
    metadata = {**source, **passage.metadata}
    named = {} if passage.id is None else {"id_": passage.id}
    node = TextNode(text=passage.text, metadata=metadata, excluded_llm_metadata_keys=list(metadata), **named)
    return NodeWithScore(node=node, score=1.0)


class LlamaIndex(Driver):
    name = "llamaindex"

    def model(self, script: Script, **fields: Any) -> Any:
        return Chat(script=script, **fields)

    def served(self, url: str, **fields: Any) -> Any:
        client = pytest.importorskip("llama_index.llms.openai_like", reason="needs its client of OpenAI's API")
        given = {"model": "m", "api_key": "none", "is_chat_model": True, "context_window": 4000, "temperature": 0.0,
                 "max_retries": 0, "timeout": 120, **fields}  # fmt: skip
        return client.OpenAILike(api_base=url, **given)

    def raw(self, reply: Callable[[str], Any]) -> Any:
        return Raw(reply=reply)

    def local(self, folder: Any, max_new_tokens: int = 16, sample: bool = False) -> Any:
        from llama_index.llms.huggingface import HuggingFaceLLM
        from transformers import AutoModelForCausalLM, AutoTokenizer

        return HuggingFaceLLM(
            model=AutoModelForCausalLM.from_pretrained(folder, dtype="float32").eval(),
            tokenizer=AutoTokenizer.from_pretrained(folder),
            context_window=1024,
            max_new_tokens=max_new_tokens,
            generate_kwargs={"do_sample": sample, "temperature": 0.7} if sample else {"do_sample": False},
            tokenizer_outputs_to_remove=["token_type_ids"],
            is_chat_model=True,
        )

    def template(self, messages: Template) -> Any:
        def named(text: str) -> str:
            for ours, theirs in NAMES.items():
                text = text.replace(ours, theirs)
            return text

        roles = {"human": "user", "ai": "assistant"}
        return ChatPromptTemplate.from_messages([(roles.get(role, role), named(text)) for role, text in messages])

    def calls(self, workers: int | None = None, **options: Any) -> CallOptions:
        return CallOptions(**({} if workers is None else {"num_workers": workers}), **options)

    def retriever(self, found: Sequence[Any] | Exception) -> Found:
        if isinstance(found, Exception):
            return Found(found)
        return Found([node_of(p) if isinstance(p, Passage) else p for p in found])

    def engine(self, model: Any, found: Sequence[Passage], template: Template | None = None, **settings: Any) -> Engine:
        retriever = settings.pop("retriever", None) or self.retriever(found)
        given = self._settings(settings, {"schema": "output_cls"})
        if template is not None:
            given["text_qa_template"] = self.template(template)
        model = self._model_of(model)
        whole, streaming = (
            RobustRAGQueryEngine.from_args(retriever, llm=model, streaming=s, **given) for s in (False, True)
        )
        return Queries(whole, streaming)


class Completions(LlamaIndex):
    name = "llamaindex completions"
    blocking = True
    chat = False

    def model(self, script: Script, **fields: Any) -> Any:
        return Text(script=script, **fields)


class Queries(Engine):
    def __init__(self, whole: Any, streaming: Any) -> None:
        self.made, self._streaming = whole, streaming
        self._last: Any = None

    def ask(self, question: str = QUESTION, **more: Any) -> Said:
        return self._said(self.made.query(question))

    async def aask(self, question: str = QUESTION, **more: Any) -> Said:
        return self._said(await self.made.aquery(question))

    def stream(self, question: str = QUESTION, **more: Any) -> Iterator[str]:
        self._last = self._streaming.query(question)
        yield from self._last.response_gen

    async def astream(self, question: str = QUESTION, **more: Any) -> AsyncIterator[str]:
        self._last = await self._streaming.aquery(question)
        async for piece in self._last.async_response_gen():
            yield piece

    def streamed(self, pieces: list[str]) -> Said:
        return self._said(self._last, pieces)

    def _said(self, response: Any, pieces: list[str] | None = None) -> Said:
        whole = (
            [response.response if not isinstance(response.response, str) else str(response)]
            if pieces is None
            else pieces
        )
        return Said(whole, robust_answer(response), [n.node.get_content() for n in response.source_nodes])
