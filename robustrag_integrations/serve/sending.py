"""Sending over ASGI: JSON at once, or server-sent events; and stopping when the client hangs up."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Coroutine, Mapping, MutableMapping
from typing import Any

from robustrag_integrations.serve.bodies import ClientGoneError, Receive

Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]


class Sender:
    """Sends one response.

    Attributes:
        status: what was sent; None before anything was.
    """

    def __init__(self, send: Send) -> None:
        self._send = send
        self.status: int | None = None

    async def json(self, status: int, body: Mapping[str, Any], headers: Mapping[str, str] | None = None) -> None:
        """Send a whole response."""
        data = _json(body)
        await self._start(status, "application/json", {"content-length": str(len(data)), **(headers or {})})
        await self._send({"type": "http.response.body", "body": data})

    async def event(self, body: Mapping[str, Any]) -> None:
        """Send an event; the first one opens the stream."""
        if self.status is None:
            await self._start(200, "text/event-stream; charset=utf-8", {"x-accel-buffering": "no"})
        await self._send({"type": "http.response.body", "body": b"data: %b\n\n" % _json(body), "more_body": True})

    async def end(self, *, complete: bool) -> None:
        """Close the stream; only a complete one ends with `[DONE]`."""
        await self._send({"type": "http.response.body", "body": b"data: [DONE]\n\n" if complete else b""})

    async def _start(self, status: int, kind: str, headers: Mapping[str, str]) -> None:
        self.status = status
        named = {"content-type": kind, "cache-control": "no-store", "x-content-type-options": "nosniff", **headers}
        listed = [(name.encode(), value.encode()) for name, value in named.items()]
        await self._send({"type": "http.response.start", "status": status, "headers": listed})


def _json(body: Mapping[str, Any]) -> bytes:
    """JSON in ASCII: no line separator of a document ends an event early."""
    return json.dumps(body, ensure_ascii=True, allow_nan=False).encode()


async def unless_gone(receive: Receive, work: Coroutine[Any, Any, None]) -> None:
    """Do the work; when the client hangs up, cancel it.

    Args:
        receive: ASGI's, with nothing left to come but the client's end.
        work: what is cancelled.

    Raises:
        ClientGoneError: the client hung up.
    """
    working, leaving = asyncio.create_task(work), asyncio.create_task(_gone(receive))
    try:
        await asyncio.wait({working, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise ClientGoneError
        await working
    finally:
        for task in (working, leaving):
            task.cancel()
        await asyncio.gather(working, leaving, return_exceptions=True)


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
