"""The official client's HTTP client with bounds that hold: a whole answer within the time and the size allowed.

The usual time-outs of HTTP clients are for one read. A server that sends a byte now and then keeps to them for ever.
"""

from __future__ import annotations

import asyncio
import functools
import importlib
import ssl
import time
from collections.abc import AsyncIterator
from typing import Any

from robustrag_integrations.errors import ModelError
from robustrag_integrations.models.time_limits import END, finishes_within, next_piece

try:
    from openai import DefaultAsyncHttpxClient
except ImportError as error:
    raise ImportError("this model needs the openai client: pip install 'robustrag-integrations[openai]'") from error

# What the official client is built on: httpx, and from its version 3 on httpx2, which has the same names.
_BASE = next(kind for kind in DefaultAsyncHttpxClient.__mro__ if kind.__name__ == "AsyncClient")
httpx: Any = importlib.import_module(_BASE.__module__.partition(".")[0])

_CONNECTIONS = httpx.Limits(max_connections=None, max_keepalive_connections=100)  # the model's own cap decides


class BoundedClient(DefaultAsyncHttpxClient):  # type: ignore[misc]
    """Gives a request up when its whole answer is not there in time, or is too large.

    Args:
        seconds: for connecting, waiting and reading together.
        largest: bytes of one answer.
    """

    def __init__(self, seconds: float, largest: int) -> None:
        # A compressed answer would say nothing about its size.
        plain = {"Accept-Encoding": "identity"}
        super().__init__(timeout=seconds, limits=_CONNECTIONS, headers=plain, verify=_trusted())
        self._seconds = seconds
        self._largest = largest

    async def send(self, request: Any, *, stream: bool = False, **more: Any) -> Any:
        """Send a request.

        Raises:
            httpx.TimeoutException: the time is over; the client tries again after it.
            ModelError: the answer is compressed though nobody asked for that, or (while reading it) too large.
        """
        deadline = time.monotonic() + self._seconds
        sending = asyncio.ensure_future(self._send(request, deadline, stream, **more))
        try:
            in_time = await finishes_within(self._seconds, sending)
        except asyncio.CancelledError:
            if sending.done() and not sending.cancelled() and sending.exception() is None:  # it came just then
                await sending.result().aclose()
            raise
        if not in_time:
            raise httpx.ReadTimeout(f"no complete answer within {self._seconds:g} s", request=request)
        return sending.result()

    async def _send(self, request: Any, deadline: float, stream: bool, **more: Any) -> Any:
        response = await super().send(request, stream=True, **more)
        try:
            coding = response.headers.get("Content-Encoding", "identity").strip().lower()
            if coding not in ("", "identity"):
                raise ModelError(f"the server compressed its answer ({coding[:20]}) though it was asked not to")
            assert isinstance(response.stream, httpx.AsyncByteStream)  # noqa: S101 - what asynchronous clients give
            response.stream = _Bounded(response.stream, deadline, self._seconds, self._largest)
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


class _Bounded(httpx.AsyncByteStream):  # type: ignore[misc]
    def __init__(self, inner: Any, deadline: float, seconds: float, largest: int) -> None:
        self._inner, self._deadline = inner, deadline
        self._seconds, self._largest = seconds, largest

    async def __aiter__(self) -> AsyncIterator[bytes]:
        pieces = self._inner.__aiter__()
        read = 0
        while True:
            told = asyncio.ensure_future(next_piece(pieces))
            if not await finishes_within(max(0.0, self._deadline - time.monotonic()), told):
                raise httpx.ReadTimeout(f"no complete answer within {self._seconds:g} s")
            if (piece := told.result()) is END:
                return
            read += len(piece)
            if read > self._largest:
                raise ModelError(f"the server's answer is larger than {self._largest:,} bytes")
            yield piece

    async def aclose(self) -> None:
        await self._inner.aclose()
