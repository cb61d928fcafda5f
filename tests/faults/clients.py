"""The three ways to a server behind one face: ask, ask asynchronously, stream, and stream asynchronously.

A stream that was read to its end leaves its report in `report`, as data.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any

from robustrag_integrations import OpenAIModel, Passage
from robustrag_integrations.defenses.registry import METHODS
from tests.contract.drivers import FRAMEWORKS, driver

QUESTION = "Who runs the mill?"
SOURCES = 7


def phrase(response: str) -> set[str]:
    """The whole response is its only keyword: what counts here is who answered, not what words are."""
    return {response.casefold()}


KEYWORDS = {"method": "keyword", "extractor": phrase, "final": "always", "alpha": 0.3, "beta": 3}
PASSAGES = [f"The mill is run by Anna Lind. Note {n}." for n in range(SOURCES)]


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


class FrameworkClient:
    """A framework's own client of such a server, in a robust engine."""

    def __init__(self, url: str, timeout: float, attempts: int, key: str, rules: Mapping[str, Any], kind: str) -> None:
        framework = driver(kind)
        self.report: dict[str, Any] | None = None
        self._http, self._ahttp = _connections(timeout)
        asynchronous = "http_async_client" if kind == "langchain" else "async_http_client"
        model = framework.served(
            url,
            api_key=key,
            timeout=timeout,
            max_retries=attempts - 1,
            **{"http_client": self._http, asynchronous: self._ahttp},
        )
        found = [Passage(text, origin=f"{n}.example", id=str(n)) for n, text in enumerate(PASSAGES)]
        self._engine = framework.engine(model, found, calls={"timeout": timeout, "attempts": 1}, **rules)

    def ask(self) -> dict[str, Any]:
        return self._engine.ask(QUESTION).answer.to_dict()

    async def aask(self) -> dict[str, Any]:
        return (await self._engine.aask(QUESTION)).answer.to_dict()

    def stream(self) -> Iterator[str]:
        yield from self._engine.stream(QUESTION)
        self.report = self._engine.streamed([]).answer.to_dict()

    async def astream(self) -> AsyncIterator[str]:
        async for piece in self._engine.astream(QUESTION):
            yield piece
        self.report = self._engine.streamed([]).answer.to_dict()

    async def aclose(self) -> None:
        await self._ahttp.aclose()

    def close(self) -> None:
        self._http.close()


def _connections(timeout: float) -> tuple[Any, Any]:
    """As the official client opens them, ours to close, without the certificates that loopback has no use for."""
    import httpx

    settings: dict[str, Any] = {"timeout": timeout, "follow_redirects": True, "verify": False}
    return httpx.Client(**settings), httpx.AsyncClient(**settings)


Client = CoreClient | FrameworkClient
CLIENTS: dict[str, Any] = {"core": CoreClient} | {kind: partial(FrameworkClient, kind=kind) for kind in FRAMEWORKS}


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
