"""The three ways to a server behind one face: ask, ask asynchronously, stream, and stream asynchronously.

A stream that was read to its end leaves its report in `report`, as data.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest

from robustrag_integrations import OpenAIModel
from robustrag_integrations.defenses.registry import METHODS
from robustrag_integrations.grouping.votes import VOTES, VoteRules

QUESTION = "Who runs the mill?"
SOURCES = 7


def phrase(response: str) -> set[str]:
    """The whole response is its only keyword: what counts here is who answered, not what words are."""
    return {response.casefold()}


KEYWORDS = {"method": "keyword", "extractor": phrase, "final": "always", "alpha": 0.3, "beta": 3}
PASSAGES = [f"The mill is run by Anna Lind. Note {n}." for n in range(SOURCES)]


def _as_votes(rules: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments as the frameworks' constructors take them: rules of voting are one object."""
    votes = {name: value for name, value in rules.items() if name in VOTES and name != "group_by"}
    return {**{n: v for n, v in rules.items() if n not in votes}, "votes": VoteRules(**votes)}


class CoreClient:
    """The core's own model."""

    def __init__(self, url: str, timeout: float, attempts: int, key: str, rules: Mapping[str, Any]) -> None:
        self.report: dict[str, Any] | None = None
        self._model = OpenAIModel("m", url, key, attempts=attempts, timeout=timeout)
        method, rules = METHODS[rules["method"]], {n: v for n, v in rules.items() if n != "method"}
        self._defense = method.build(self._model, **rules)

    def ask(self) -> dict[str, Any]:
        return self._defense.answer(QUESTION, PASSAGES).to_dict()

    async def aask(self) -> dict[str, Any]:
        return (await self._defense.aanswer(QUESTION, PASSAGES)).to_dict()

    def stream(self) -> Iterator[str]:
        begun = self._defense.stream(QUESTION, PASSAGES)
        yield from begun
        self.report = begun.answer.to_dict()

    async def astream(self) -> AsyncIterator[str]:
        begun = self._defense.astream(QUESTION, PASSAGES)
        async for piece in begun:
            yield piece
        self.report = begun.answer.to_dict()

    async def aclose(self) -> None:
        await self._model.aclose()

    def close(self) -> None:
        self._model.close()


class LangChainClient:
    """`ChatOpenAI` in a robust documents chain."""

    def __init__(self, url: str, timeout: float, attempts: int, key: str, rules: Mapping[str, Any]) -> None:
        pytest.importorskip("langchain_openai", reason="needs langchain-openai")
        from langchain_core.documents import Document
        from langchain_openai import ChatOpenAI

        from langchain_robustrag import CallOptions, create_robust_documents_chain

        self.report: dict[str, Any] | None = None
        self._http, self._ahttp = _connections(timeout)
        asking = {"model": "m", "base_url": url, "api_key": key, "temperature": 0, "stream_usage": False}
        waiting = {"timeout": timeout, "max_retries": attempts - 1}
        llm = ChatOpenAI(**asking, **waiting, http_client=self._http, http_async_client=self._ahttp)
        calls = CallOptions(timeout=timeout, attempts=1)
        self._chain = create_robust_documents_chain(llm, calls=calls, return_robustness=True, **_as_votes(rules))
        self._given = {"input": QUESTION, "context": [Document(p) for p in PASSAGES]}

    def ask(self) -> dict[str, Any]:
        return self._chain.invoke(self._given)["robustness"].to_dict()

    async def aask(self) -> dict[str, Any]:
        return (await self._chain.ainvoke(self._given))["robustness"].to_dict()

    def stream(self) -> Iterator[str]:
        for part in self._chain.stream(self._given):
            yield from self._pieces(part)

    async def astream(self) -> AsyncIterator[str]:
        async for part in self._chain.astream(self._given):
            for piece in self._pieces(part):
                yield piece

    def _pieces(self, part: Any) -> list[str]:
        if "robustness" in part:
            self.report = part["robustness"].to_dict()
        return [part["answer"]] if "answer" in part else []

    async def aclose(self) -> None:
        await self._ahttp.aclose()

    def close(self) -> None:
        self._http.close()


class LlamaIndexClient:
    """`OpenAILike` in a robust synthesizer."""

    def __init__(self, url: str, timeout: float, attempts: int, key: str, rules: Mapping[str, Any]) -> None:
        pytest.importorskip("llama_index.llms.openai_like", reason="needs llama-index-llms-openai-like")
        from llama_index.core.schema import NodeWithScore, TextNode
        from llama_index.llms.openai_like import OpenAILike

        from llamaindex_robustrag import CallOptions, RobustRAGSynthesizer

        self.report: dict[str, Any] | None = None
        self._http, self._ahttp = _connections(timeout)
        asking = {"model": "m", "api_base": url, "api_key": key, "is_chat_model": True, "context_window": 4096}
        waiting = {"temperature": 0.0, "timeout": timeout, "max_retries": attempts - 1}
        llm = OpenAILike(**asking, **waiting, http_client=self._http, async_http_client=self._ahttp)
        calls = CallOptions(timeout=timeout, attempts=1)
        settings: dict[str, Any] = {"group_by": "passage", "calls": calls, **_as_votes(rules)}
        self._whole = RobustRAGSynthesizer(llm=llm, **settings)
        self._streaming = RobustRAGSynthesizer(llm=llm, streaming=True, **settings)
        self._nodes = [NodeWithScore(node=TextNode(text=p, id_=str(n)), score=1.0) for n, p in enumerate(PASSAGES)]

    def ask(self) -> dict[str, Any]:
        return self._whole.synthesize(QUESTION, self._nodes).metadata["robustrag"]

    async def aask(self) -> dict[str, Any]:
        return (await self._whole.asynthesize(QUESTION, self._nodes)).metadata["robustrag"]

    def stream(self) -> Iterator[str]:
        response = self._streaming.synthesize(QUESTION, self._nodes)
        yield from response.response_gen
        self.report = response.metadata["robustrag"]

    async def astream(self) -> AsyncIterator[str]:
        response = await self._streaming.asynthesize(QUESTION, self._nodes)
        async for piece in response.async_response_gen():
            yield piece
        self.report = response.metadata["robustrag"]

    async def aclose(self) -> None:
        await self._ahttp.aclose()

    def close(self) -> None:
        self._http.close()


def _connections(timeout: float) -> tuple[Any, Any]:
    """As the official client opens them, ours to close, without the certificates that loopback has no use for."""
    import httpx

    settings: dict[str, Any] = {"timeout": timeout, "follow_redirects": True, "verify": False}
    return httpx.Client(**settings), httpx.AsyncClient(**settings)


Client = CoreClient | LangChainClient | LlamaIndexClient
CLIENTS = {"core": CoreClient, "langchain": LangChainClient, "llamaindex": LlamaIndexClient}


@contextmanager
def client_of(
    kind: str,
    url: str,
    timeout: float = 600.0,
    attempts: int = 1,
    key: str = "none",
    rules: Mapping[str, Any] = KEYWORDS,
) -> Iterator[Client]:
    client = CLIENTS[kind](url, timeout, attempts, key, rules)
    try:
        yield client
    finally:
        client.close()
