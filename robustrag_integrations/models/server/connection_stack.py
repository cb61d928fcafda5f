"""Kept connections in a stack: what a request costs does not grow with how many are open.

The HTTP library's own pool looks at all of its connections whenever a request begins or ends. With 64 requests under
way that took ten times as long as the requests themselves. Here each request has a connection to itself,
and the one that was used last goes out first, so that those which are not needed any more grow old and are closed.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from typing import Any

from robustrag_integrations.models.server.http_library import httpx

_MOST_KEPT = 256  # connections that nobody uses
_LONGEST_KEPT = 5.0  # seconds without use, as in httpx: servers hang up on idle connections, uvicorn after 5


class ConnectionStack(httpx.AsyncBaseTransport):  # type: ignore[misc]
    """Sends each request over a connection that nothing else uses meanwhile; used in one event loop.

    Args:
        connect: makes a transport, which opens its connection when it first sends a request.
    """

    def __init__(self, connect: Callable[[], Any]) -> None:
        self._connect = connect
        self._kept: deque[tuple[float, Any]] = deque()  # since when nobody uses it; the newest last

    async def handle_async_request(self, request: Any) -> Any:
        """Send a request; its connection is kept for the next one when the response is closed."""
        connection = self._kept.pop()[1] if self._kept else self._connect()
        try:
            response = await connection.handle_async_request(request)
        except BaseException:
            await connection.aclose()
            raise
        response.stream = _Lent(response.stream, connection, self._keep)
        return response

    async def aclose(self) -> None:
        """Close the connections that nobody uses; one in use is closed with its response."""
        self._connect = _closed
        while self._kept:
            await self._kept.pop()[1].aclose()

    async def _keep(self, connection: Any) -> None:
        if self._connect is _closed or _said_more(connection):
            await connection.aclose()
            return
        now = time.monotonic()
        self._kept.append((now, connection))
        while len(self._kept) > _MOST_KEPT or self._kept[0][0] < now - _LONGEST_KEPT:
            await self._kept.popleft()[1].aclose()


def _closed() -> Any:
    raise RuntimeError("this client was closed")


def _said_more(connection: Any) -> bool:
    """Whether bytes came with the last response that stand behind it: they would be read as the next request's reply.

    The HTTP library drops a connection on which bytes come later, but keeps these, and does not tell of them.
    """
    opened = getattr(getattr(connection, "_pool", None), "connections", ())
    parsers = [getattr(getattr(one, "_connection", None), "_h11_state", None) for one in opened]
    return any(parser.trailing_data[0] for parser in parsers if parser is not None)


class _Lent(httpx.AsyncByteStream):  # type: ignore[misc]
    """A response's body; whoever closes it gives the connection back."""

    def __init__(self, inner: Any, connection: Any, give_back: Callable[[Any], Any]) -> None:
        self._inner, self._connection, self._give_back = inner, connection, give_back

    def __aiter__(self) -> AsyncIterator[bytes]:
        pieces: AsyncIterator[bytes] = self._inner.__aiter__()
        return pieces

    async def aclose(self) -> None:
        connection, self._connection = self._connection, None
        if connection is None:
            return
        try:
            await self._inner.aclose()
        except BaseException:
            await connection.aclose()
            raise
        await self._give_back(connection)
