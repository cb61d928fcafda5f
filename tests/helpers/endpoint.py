"""The project's own endpoint on loopback, for the time of a test."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from typing import Any

import pytest

pytest.importorskip("uvicorn", reason="the extra serve is not installed")

from robustrag_integrations import CallableModel, KeywordAggregation, Passage, VanillaRAG
from robustrag_integrations.corpus.retrieval import BM25Index, Library
from robustrag_integrations.models.base import TextModel
from robustrag_integrations.serve.app import Service, create_app
from robustrag_integrations.serve.endpoint import Limits
from robustrag_integrations.serve.server import bound, configured

TEXTS = [f"Secret page {n}: the mill is run by Anna Lind." for n in range(5)]
QUESTION = "Who runs the mill?"


def service(
    model: TextModel | Callable[[str], str], *, limits: Limits | None = None, final: Any = "always", **more: Any
) -> Service:
    """Keyword aggregation, voting and vanilla over five pages that agree."""
    text = model if isinstance(model, TextModel) else CallableModel(model)
    pages = [Passage(t, id=f"page-{n}", origin=f"site-{n}.example") for n, t in enumerate(TEXTS)]
    return Service(
        library=Library(BM25Index(pages)),
        models={
            "robustrag-keyword": KeywordAggregation(text, group_by="origin", final=final, alpha=0.6, beta=5),
            "vanilla": VanillaRAG(text),
        },
        limits=limits or Limits(),
        **more,
    )


@contextmanager
def serving(served: Service, **doors: Any) -> Iterator[str]:
    """The address of the endpoint, without `/v1`."""
    with running(create_app(served, **doors)) as address:
        yield address


@contextmanager
def started(app: Any, **options: Any) -> Iterator[tuple[str, Callable[[], None]]]:
    """The address of an application on loopback, and what tells it to stop; the options are `configured`'s."""
    with bound("127.0.0.1", 0) as listening:
        server = configured(app, **{"last_seconds": 1, **options})
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
        thread.start()
        while not server.started and thread.is_alive():
            time.sleep(0.01)
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}", lambda: setattr(server, "should_exit", True)
        finally:
            server.should_exit = True
            thread.join(30)


@contextmanager
def running(app: Any, **options: Any) -> Iterator[str]:
    """The address of an application on loopback."""
    with started(app, **options) as (address, _):
        yield address


def posted(
    address: str, body: bytes | dict[str, Any], headers: dict[str, str] | None = None
) -> tuple[int, dict[str, str], Any]:
    """Status, headers and JSON of a reply to a request that no client library would send."""
    connection = HTTPConnection(address.removeprefix("http://"), timeout=30)
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    try:
        connection.request(
            "POST", "/v1/chat/completions", data, {"Content-Type": "application/json", **(headers or {})}
        )
        reply = connection.getresponse()
        return reply.status, {k.lower(): v for k, v in reply.getheaders()}, json.loads(reply.read())
    finally:
        connection.close()


def asking(content: Any = QUESTION, **more: Any) -> dict[str, Any]:
    """The body of a request with one message."""
    return {"model": "robustrag-keyword", "messages": [{"role": "user", "content": content}], **more}
