"""Ways of asking a question for the load test: this package's, and clients that only send the same requests."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from robustrag_integrations import CallableModel, KeywordAggregation, RobustAnswer


@dataclass(frozen=True)
class Asker:
    """Callables that ask question number n, sync and async, and close the connections of both.

    Attributes:
        ask, aask: the answer to a question; `ask` is None where it can only be awaited.
        close, aclose: end what they have opened.
        errors: what made sources fail, where the answers say so.
    """

    ask: Callable[[int], str] | None
    aask: Callable[[int], Awaitable[str]]
    close: Callable[[], None]
    aclose: Callable[[], Awaitable[None]]
    errors: list[str] = field(default_factory=list)


def question(number: int, documents: int) -> tuple[str, list[str], str]:
    """Return a question, its documents, and the only answer that is its own."""
    code = f"K{number * 7919 % 1_000_003:06d}X{number}"
    return f"What is the code of depot {number}?", [f"The code of depot {number} is {code}."] * documents, code


def phrase(response: str) -> set[str]:
    """Return the whole response as its only keyword: the load is on calls, not on linguistics."""
    return {response}


def core_asker(address: str, concurrency: int, documents: int) -> Asker:
    """Ask through the core's `OpenAIModel`."""
    from robustrag_integrations import OpenAIModel

    model = OpenAIModel("load", f"{address}/v1", attempts=1, max_concurrency=concurrency * documents)
    defense = KeywordAggregation(model, extractor=phrase)

    errors: list[str] = []

    def noted(answer: RobustAnswer) -> str:
        errors.extend(source.error for source in answer.sources if source.error is not None)
        return str(answer.text)

    async def aask(number: int) -> str:
        return noted(await defense.aanswer(*question(number, documents)[:2]))

    def ask(number: int) -> str:
        return noted(defense.answer(*question(number, documents)[:2]))

    return Asker(ask, aask, model.close, model.aclose, errors)


def httpx_asker(address: str, concurrency: int, documents: int) -> Asker:
    """Send the same requests with nothing but httpx: all of a question at once, then the final one."""
    import httpx

    limits = httpx.Limits(max_connections=None, max_keepalive_connections=None)
    client = httpx.AsyncClient(limits=limits, timeout=120, headers={"Authorization": "Bearer none"})

    async def said(prompt: str) -> str:
        fields = {"model": "load", "max_tokens": 256, "temperature": 0.0}
        body = {"messages": [{"role": "user", "content": prompt}], **fields}
        reply = await client.post(f"{address}/v1/chat/completions", json=body)
        return str(reply.json()["choices"][0]["message"]["content"])

    async def aask(number: int) -> str:
        *isolated, final = _prompts(documents)
        code = question(number, documents)[2]
        told = [prompt.replace("depot 0", f"depot {number}").replace(_CODE, code) for prompt in (*isolated, final)]
        await asyncio.gather(*map(said, told[:-1]))
        return await said(told[-1])

    return Asker(None, aask, lambda: None, client.aclose)


_CODE = question(0, 1)[2]


@cache
def _prompts(documents: int) -> tuple[str, ...]:
    """Return the prompts of keyword aggregation for question 0, the final prompt last."""
    asked: list[str] = []

    def reader(prompt: str) -> str:
        asked.append(prompt)
        return _CODE

    KeywordAggregation(CallableModel(reader, max_concurrency=1), extractor=phrase).answer(*question(0, documents)[:2])
    return tuple(asked)


def langchain_asker(address: str, concurrency: int, documents: int) -> Asker:
    """Ask through LangChain."""
    import httpx
    from langchain_core.documents import Document
    from langchain_openai import ChatOpenAI

    from langchain_robustrag import CallOptions, create_robust_documents_chain

    http, ahttp = _clients(httpx)
    llm = ChatOpenAI(
        model="load",
        base_url=f"{address}/v1",
        api_key="none",
        temperature=0,
        max_retries=0,
        http_client=http,
        http_async_client=ahttp,
    )
    chain = create_robust_documents_chain(
        llm, method="keyword", extractor=phrase, calls=CallOptions(max_concurrency=concurrency * documents)
    )

    def given(number: int) -> dict[str, Any]:
        asked, texts, _ = question(number, documents)
        return {"input": asked, "context": [Document(text) for text in texts]}

    async def aask(number: int) -> str:
        return str(await chain.ainvoke(given(number)))

    return Asker(lambda number: str(chain.invoke(given(number))), aask, http.close, ahttp.aclose)


def llamaindex_asker(address: str, concurrency: int, documents: int) -> Asker:
    """Ask through LlamaIndex."""
    import httpx
    from llama_index.core.schema import NodeWithScore, TextNode
    from llama_index.llms.openai_like import OpenAILike

    from llamaindex_robustrag import CallOptions, RobustRAGSynthesizer

    http, ahttp = _clients(httpx)
    llm = OpenAILike(
        model="load",
        api_base=f"{address}/v1",
        api_key="none",
        is_chat_model=True,
        context_window=4096,
        temperature=0.0,
        max_retries=0,
        http_client=http,
        async_http_client=ahttp,
    )
    workers = concurrency * documents
    synthesizer = RobustRAGSynthesizer(
        llm=llm,
        method="keyword",
        group_by="passage",
        extractor=phrase,
        calls=CallOptions(num_workers=workers, attempts=1),
    )

    def given(number: int) -> tuple[str, list[NodeWithScore]]:
        asked, texts, _ = question(number, documents)
        return asked, [NodeWithScore(node=TextNode(text=t, id_=f"{number}/{i}")) for i, t in enumerate(texts)]

    async def aask(number: int) -> str:
        return str(await synthesizer.asynthesize(*given(number)))

    return Asker(lambda number: str(synthesizer.synthesize(*given(number))), aask, http.close, ahttp.aclose)


def _clients(httpx: Any) -> tuple[Any, Any]:
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=256)
    return httpx.Client(limits=limits, timeout=120), httpx.AsyncClient(limits=limits, timeout=120)


ASKERS: dict[str, Callable[[str, int, int], Asker]] = {
    "core": core_asker,
    "httpx": httpx_asker,
    "langchain": langchain_asker,
    "llamaindex": llamaindex_asker,
}
STYLES = (
    "core async",
    "core threads",
    "httpx async",
    "langchain async",
    "langchain threads",
    "llamaindex async",
    "llamaindex threads",
)
