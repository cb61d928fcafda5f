"""Ways of asking a question for the load run: this package's, and clients that send the same requests, no more."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any

from robustrag_integrations import CallableModel, ConsensusAggregation, KeywordAggregation, MajorityVoting


@dataclass(frozen=True)
class Asker:
    """How to ask question number n, sync and async, and how to close the connections of both.

    Attributes:
        ask, aask: the answer to a question; `ask` is None where it can only be awaited.
        close, aclose: end what they have opened.
        calls, radii, errors: how many model calls each answer made, its radius, and what made groups fail, where it
            says so.
    """

    ask: Callable[[int], str] | None
    aask: Callable[[int], Awaitable[str]]
    close: Callable[[], None]
    aclose: Callable[[], Awaitable[None]]
    calls: list[int] = field(default_factory=list)
    radii: list[int] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)


def question(number: int, documents: int) -> tuple[str, list[str], str]:
    """A question, its documents, and the only answer that is its own."""
    code = f"K{number * 7919 % 1_000_003:06d}X{number}"
    return f"What is the code of depot {number}?", [f"The code of depot {number} is {code}."] * documents, code


def phrase(response: str) -> set[str]:
    """The whole response as its only keyword: the load is on calls, not on linguistics."""
    return {response}


def core_asker(
    address: str,
    concurrency: int,
    documents: int,
    *,
    method: str = "keyword",
    early: bool = False,
    wave: int | None = None,
) -> Asker:
    """Through the core's `OpenAIModel`.

    Args:
        address: the server.
        concurrency: how many questions are in flight.
        documents: per question.
        method: `keyword`, `consensus` or `voting`, which has the code among its options.
        early: whether the answer comes as soon as it is decided.
        wave: with that, how many groups are asked at once.
    """
    from robustrag_integrations import OpenAIModel

    model = OpenAIModel("load", f"{address}/v1", attempts=1, max_concurrency=concurrency * documents)
    rules: dict[str, Any] = {"stop_when_decided": True, "wave_size": wave} if early else {}
    if method != "voting":
        rules["extractor"] = phrase
    made = {"keyword": KeywordAggregation, "consensus": ConsensusAggregation, "voting": MajorityVoting}[method]
    defense: Any = made(model, **rules)
    asker: Asker

    def given(number: int) -> dict[str, Any]:
        asked, texts, code = question(number, documents)
        choices = {"choices": [code, "another code"]} if method == "voting" else {}
        return {"query": asked, "passages": texts, **choices}

    def noted(answer: Any) -> str:
        asker.calls.append(answer.model_calls)
        asker.radii.append(answer.radius)
        asker.errors.extend(group.error for group in answer.groups if group.error is not None)
        return str(answer.text)

    async def aask(number: int) -> str:
        return noted(await defense.aanswer(**given(number)))

    def ask(number: int) -> str:
        return noted(defense.answer(**given(number)))

    asker = Asker(ask, aask, model.close, model.aclose)
    return asker


def httpx_asker(address: str, concurrency: int, documents: int, *, stack: bool = False) -> Asker:
    """The same requests with nothing but httpx: all of a question at once, then the final one.

    Args:
        address: the server.
        concurrency: how many questions are in flight.
        documents: per question.
        stack: whether it has the connections that `OpenAIModel` has, in place of its own pool.
    """
    import httpx

    from robustrag_integrations.models.server.connection_stack import ConnectionStack

    limits = httpx.Limits(max_connections=None, max_keepalive_connections=None)
    trusted = httpx.create_ssl_context()
    transport = ConnectionStack(partial(httpx.AsyncHTTPTransport, verify=trusted)) if stack else None
    client = httpx.AsyncClient(limits=limits, timeout=120, transport=transport)

    async def post(body: dict[str, Any]) -> bytes:
        return (await client.post(f"{address}/v1/chat/completions", json=body, headers=_KEY)).content

    return _bare_asker(post, client.aclose, documents)


def aiohttp_asker(address: str, concurrency: int, documents: int) -> Asker:
    """The same requests with nothing but aiohttp."""
    import aiohttp

    sessions: list[Any] = []

    async def post(body: dict[str, Any]) -> bytes:
        if not sessions:
            sessions.append(aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)))
        async with sessions[0].post(f"{address}/v1/chat/completions", json=body, headers=_KEY) as reply:
            body_of: bytes = await reply.read()
            return body_of

    async def aclose() -> None:
        for session in sessions:
            await session.close()

    return _bare_asker(post, aclose, documents)


_KEY = {"Authorization": "Bearer none"}


def _bare_asker(
    post: Callable[[dict[str, Any]], Awaitable[bytes]], aclose: Callable[[], Awaitable[None]], documents: int
) -> Asker:
    async def said(prompt: str) -> str:
        fields = {"model": "load", "max_tokens": 256, "temperature": 0.0}
        body = await post({"messages": [{"role": "user", "content": prompt}], **fields})
        return str(json.loads(body)["choices"][0]["message"]["content"])

    async def aask(number: int) -> str:
        *isolated, final = _prompts(documents)
        code = question(number, documents)[2]
        told = [prompt.replace("depot 0", f"depot {number}").replace(_CODE, code) for prompt in (*isolated, final)]
        await asyncio.gather(*map(said, told[:-1]))
        return await said(told[-1])

    return Asker(None, aask, lambda: None, aclose)


_CODE = question(0, 1)[2]


@cache
def _prompts(documents: int) -> tuple[str, ...]:
    """What keyword aggregation asks for question 0, the final prompt last."""
    asked: list[str] = []

    def reader(prompt: str) -> str:
        asked.append(prompt)
        return _CODE

    KeywordAggregation(CallableModel(reader, max_concurrency=1), extractor=phrase).answer(*question(0, documents)[:2])
    return tuple(asked)


def langchain_asker(address: str, concurrency: int, documents: int) -> Asker:
    """Through LangChain."""
    import httpx
    from langchain_core.documents import Document
    from langchain_openai import ChatOpenAI

    from langchain_robustrag import create_robust_documents_chain

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
    chain = create_robust_documents_chain(llm, extractor=phrase, max_concurrency=concurrency * documents)

    def given(number: int) -> dict[str, Any]:
        asked, texts, _ = question(number, documents)
        return {"input": asked, "context": [Document(text) for text in texts]}

    async def aask(number: int) -> str:
        return str(await chain.ainvoke(given(number)))

    return Asker(lambda number: str(chain.invoke(given(number))), aask, http.close, ahttp.aclose)


def llamaindex_asker(address: str, concurrency: int, documents: int) -> Asker:
    """Through LlamaIndex."""
    import httpx
    from llama_index.core.schema import NodeWithScore, TextNode
    from llama_index.llms.openai_like import OpenAILike

    from llamaindex_robustrag import RobustRAGSynthesizer

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
    synthesizer = RobustRAGSynthesizer(llm=llm, group_by="passage", extractor=phrase, num_workers=workers, attempts=1)

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
    "httpx-stack": partial(httpx_asker, stack=True),
    "aiohttp": aiohttp_asker,
    "langchain": langchain_asker,
    "llamaindex": llamaindex_asker,
}
STYLES = (
    "core async",
    "core threads",
    "httpx async",
    "httpx-stack async",
    "aiohttp async",
    "langchain async",
    "langchain threads",
    "llamaindex async",
    "llamaindex threads",
)
