"""The official client's HTTP client with bounds that hold: one deadline and one size for a whole reply, one host.

The usual time-outs of HTTP clients are for one read: a server that sends a byte now and then keeps to them for ever.
Redirects are not followed: another host would get the passages, and its reply would count.
"""

from __future__ import annotations

import asyncio
import functools
import ssl
import time
from collections.abc import AsyncIterator
from contextvars import ContextVar
from typing import Any
from urllib.request import getproxies

from openai import DefaultAsyncHttpxClient, OpenAIError

from robustrag_integrations.models.limits import END, cancelled_after
from robustrag_integrations.models.server.connection_stack import ConnectionStack
from robustrag_integrations.models.server.http_library import httpx

DEADLINE = "robustrag_deadline"  # in a response's extensions: the moment at which it must have been read and understood
LARGEST: ContextVar[int] = ContextVar("largest")  # bytes of the reply to the request that is being sent

_LARGEST_ERROR = 64 << 10  # bytes of an error's body that are read
_UNLIMITED = httpx.Limits(max_connections=None, max_keepalive_connections=100)  # the model's own cap decides
_ONE = httpx.Limits(max_connections=1, max_keepalive_connections=1)


class ReplyRefused(OpenAIError):  # type: ignore[misc]
    """The reply is not read; asking again would not help."""


class BoundedClient(DefaultAsyncHttpxClient):  # type: ignore[misc]
    """Gives a request up when its whole reply is not there in time, or is larger than `LARGEST` says.

    Args:
        seconds: for connecting, waiting and reading together.
        auth: user and password, where the server's address holds them.
    """

    def __init__(self, seconds: float, auth: tuple[str, str] | None = None) -> None:
        # A compressed reply would say nothing about its size.
        plain = {"Accept-Encoding": "identity"}
        super().__init__(
            timeout=seconds,
            limits=_UNLIMITED,
            headers=plain,
            verify=_trusted(),
            follow_redirects=False,
            auth=auth,
            transport=None if _behind_a_proxy() else ConnectionStack(_connection),
        )
        self._seconds = seconds

    async def send(self, request: Any, *, stream: bool = False, **more: Any) -> Any:
        """Send a request.

        Raises:
            httpx.TimeoutException: the time is over; the client tries again after it.
            ReplyRefused: the reply is compressed though it was asked not to be, or (while reading it) too large.
        """
        deadline = time.monotonic() + self._seconds
        try:
            async with cancelled_after(self._seconds):
                return await self._send(request, deadline, stream, **{**more, "follow_redirects": False})
        except asyncio.TimeoutError:
            raise httpx.ReadTimeout(f"no complete answer within {self._seconds:g} s", request=request) from None

    async def _send(self, request: Any, deadline: float, stream: bool, **more: Any) -> Any:
        response = await super().send(request, stream=True, **more)
        try:
            coding = response.headers.get("Content-Encoding", "identity").strip().lower()
            if coding not in ("", "identity"):
                raise ReplyRefused(f"the server compressed its reply ({coding[:20]}) though it was asked not to")
            assert isinstance(response.stream, httpx.AsyncByteStream)  # noqa: S101 - what asynchronous clients give
            response.stream = _Bounded(response, LARGEST.get(), self._seconds, deadline if stream else None)
            response.extensions[DEADLINE] = deadline
            if not stream:
                await response.aread()
        except BaseException:
            await response.aclose()
            raise
        return response


@functools.cache
def _trusted() -> ssl.SSLContext:
    """The certificates that the platform trusts; reading them takes longer than many a call, so once is enough."""
    context: ssl.SSLContext = httpx.create_ssl_context()
    return context


def _connection() -> Any:
    return httpx.AsyncHTTPTransport(verify=_trusted(), limits=_ONE)


def _behind_a_proxy() -> bool:
    """Whether the environment names a proxy, which the HTTP library finds as long as the transports are its own."""
    named = getproxies()
    return any(named.get(scheme) for scheme in ("http", "https", "all"))


class _Bounded(httpx.AsyncByteStream):  # type: ignore[misc]
    """A response's body. A large one is refused; of an error's, the beginning is enough.

    Args:
        response: its own.
        largest: bytes of it.
        seconds: the time limit, for the message.
        deadline: when a stream must have ended; None where the time for the whole reply is watched by who reads it.
    """

    def __init__(self, response: Any, largest: int, seconds: float, deadline: float | None) -> None:
        self._inner, self._is_error = response.stream, not response.is_success
        self._largest, self._seconds, self._deadline = largest, seconds, deadline

    async def __aiter__(self) -> AsyncIterator[bytes]:
        pieces = self._inner.__aiter__()
        read = 0
        while (piece := await self._next(pieces)) is not END:
            read += len(piece)
            if self._is_error and read > _LARGEST_ERROR:
                yield piece[: len(piece) - (read - _LARGEST_ERROR)]
                return
            if read > self._largest:
                raise ReplyRefused(
                    f"the server's reply is larger than {self._largest:,} bytes, the most that this max_tokens allows "
                    "for: raise it if answers are to be that long"
                )
            yield piece

    async def _next(self, pieces: AsyncIterator[bytes]) -> Any:
        if self._deadline is None:
            return await anext(pieces, END)
        try:
            async with cancelled_after(max(0.0, self._deadline - time.monotonic())):
                return await anext(pieces, END)
        except asyncio.TimeoutError:
            raise httpx.ReadTimeout(f"no complete answer within {self._seconds:g} s") from None

    async def aclose(self) -> None:
        await self._inner.aclose()
