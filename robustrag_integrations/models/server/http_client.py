"""The HTTP client below the official one: large and compressed replies are refused, and redirects not followed.

A redirect would send the passages to another host, whose reply would count.

Connections are kept in a stack, so that the cost of a request does not grow with the number of open ones. The HTTP
library's own pool looks at all of its connections whenever a request begins or ends: with 64 questions of ten groups
under way, a request took 3.1 ms of computing with it, and 0.9 without. Here each request has a connection to itself,
and the most recently used one is reused first, so that surplus ones grow old and are closed.
"""

from __future__ import annotations

import functools
import importlib
import ssl
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any
from urllib.request import getproxies

from openai import DefaultAsyncHttpxClient, OpenAIError

# httpx, and httpx2 from version 3 of the official client on, which has the same names.
_BASE = next(kind for kind in DefaultAsyncHttpxClient.__mro__ if kind.__name__ == "AsyncClient")
httpx: Any = importlib.import_module(_BASE.__module__.partition(".")[0])

_LARGEST_ERROR = 64 << 10  # bytes of an error's body that are read
_MOST_KEPT = 256  # idle connections
_LONGEST_KEPT = 5.0  # seconds without use, as in httpx: servers hang up on idle connections, uvicorn after 5
_UNLIMITED = httpx.Limits(max_connections=None, max_keepalive_connections=100)  # the model's own cap decides
_ONE = httpx.Limits(max_connections=1, max_keepalive_connections=1)


class ReplyRefused(OpenAIError):  # type: ignore[misc]
    """A reply that is refused unread; a retry would not help."""


class Client(DefaultAsyncHttpxClient):  # type: ignore[misc]
    """An HTTP client whose replies are read piece by piece by the caller, of an error's body only the beginning."""

    def __init__(self) -> None:
        super().__init__(
            timeout=None,  # the caller limits a whole try; HTTP clients' limits are for one read
            limits=_UNLIMITED,
            headers={"Accept-Encoding": "identity"},  # a compressed reply would hide its size
            verify=_trusted(),
            transport=None if _behind_a_proxy() else ConnectionStack(),
        )

    async def send(self, request: Any, **more: Any) -> Any:
        """Send a request.

        Raises:
            ReplyRefused: the reply is compressed though it was asked not to be.
        """
        response = await super().send(request, **{**more, "stream": True, "follow_redirects": False})
        coding = response.headers.get("Content-Encoding", "identity").strip().lower()
        if coding not in ("", "identity"):
            await response.aclose()
            raise ReplyRefused(f"the server compressed its reply ({coding[:20]}) though it was asked not to")
        if not response.is_success:
            response.stream = _Body(response.stream, response.stream.aclose, _LARGEST_ERROR)
        return response


class ConnectionStack(httpx.AsyncBaseTransport):  # type: ignore[misc]
    """A stack of connections for one event loop; each request has one to itself."""

    def __init__(self) -> None:
        self._kept: deque[tuple[float, Any]] = deque()  # idle since when, and the connection; the newest last
        self._closed = False

    async def handle_async_request(self, request: Any) -> Any:
        """Send a request; its connection is kept for the next one when the response is closed."""
        if self._closed:
            raise RuntimeError("this client was closed")
        connection = self._kept.pop()[1] if self._kept else httpx.AsyncHTTPTransport(verify=_trusted(), limits=_ONE)
        try:
            response = await connection.handle_async_request(request)
        except BaseException:
            await connection.aclose()
            raise
        response.stream = _Body(response.stream, functools.partial(self._give_back, connection, response.stream))
        return response

    async def aclose(self) -> None:
        """Close idle connections; one in use is closed with its response."""
        self._closed = True
        while self._kept:
            await self._kept.pop()[1].aclose()

    async def _give_back(self, connection: Any, body: Any) -> None:
        try:
            await body.aclose()
        except BaseException:
            await connection.aclose()
            raise
        if self._closed or _said_more(connection):
            await connection.aclose()
            return
        now = time.monotonic()
        self._kept.append((now, connection))
        while len(self._kept) > _MOST_KEPT or self._kept[0][0] < now - _LONGEST_KEPT:
            await self._kept.popleft()[1].aclose()


class _Body(httpx.AsyncByteStream):  # type: ignore[misc]
    """A response's body, up to `largest` bytes; closing it calls `close`, once."""

    def __init__(self, inner: Any, close: Callable[[], Awaitable[None]], largest: int | None = None) -> None:
        self._inner, self._largest = inner, largest
        self._close: Callable[[], Awaitable[None]] | None = close

    async def __aiter__(self) -> AsyncIterator[bytes]:
        left = self._largest
        async for piece in self._inner:
            yield piece[:left]
            if left is not None and (left := left - len(piece)) <= 0:
                return

    async def aclose(self) -> None:
        close, self._close = self._close, None
        if close is not None:
            await close()


def _said_more(connection: Any) -> bool:
    """Tell whether bytes came behind the last response: they would be read as the next request's reply.

    The HTTP library drops a connection on which bytes come later, but silently keeps these.
    """
    opened = getattr(getattr(connection, "_pool", None), "connections", ())
    parsers = [getattr(getattr(one, "_connection", None), "_h11_state", None) for one in opened]
    return any(parser.trailing_data[0] for parser in parsers if parser is not None)


@functools.cache
def _trusted() -> ssl.SSLContext:
    """Read the certificates that the platform trusts, once: it takes longer than many a call."""
    context: ssl.SSLContext = httpx.create_ssl_context()
    return context


def _behind_a_proxy() -> bool:
    """Tell whether the environment names a proxy, which the HTTP library uses only with transports of its own."""
    named = getproxies()
    return any(named.get(scheme) for scheme in ("http", "https", "all"))
