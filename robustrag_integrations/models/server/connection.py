"""Connections to an OpenAI-compatible server: key, address, a client per event loop, replies of bounded size.

Large and compressed replies are refused. So are redirects: one would send the passages to another host, whose reply
would count.

Connections are kept in a stack, so that the cost of a request does not grow with the number of open ones. The HTTP
library's own pool looks at all of its connections whenever a request begins or ends: with 64 questions of ten groups
under way, a request took 3.1 ms of computing with it, and 0.9 without. Here each request has a connection to itself,
and the most recently used one is reused first, so that surplus ones grow old and are closed.
"""

from __future__ import annotations

import functools
import importlib
import os
import ssl
import time
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import aclosing
from typing import Any, TypeVar
from urllib.parse import urlsplit
from urllib.request import getproxies

try:
    from openai import APIConnectionError, AsyncOpenAI, AsyncStream, DefaultAsyncHttpxClient, OpenAIError
except ImportError as error:
    raise ImportError("this model needs the openai client: pip install 'robustrag-integrations[openai]'") from error

from robustrag_integrations._util.redaction import redacted
from robustrag_integrations.errors import ModelError
from robustrag_integrations.models.client_errors import is_busy, retry_after
from robustrag_integrations.models.event_loops import PerLoop
from robustrag_integrations.models.server.replies import Events, parsed, said_by_server
from robustrag_integrations.models.threads import in_thread

Result = TypeVar("Result")

# httpx, and httpx2 from version 3 of the official client on, which has the same names.
_BASE = next(kind for kind in DefaultAsyncHttpxClient.__mro__ if kind.__name__ == "AsyncClient")
httpx: Any = importlib.import_module(_BASE.__module__.partition(".")[0])

_LARGEST_ERROR = 64 << 10  # bytes of an error's body that are read
_MOST_KEPT = 256  # idle connections
_LONGEST_KEPT = 5.0  # seconds without use, as in httpx: servers hang up on idle connections, uvicorn after 5
_NO_LIMITS = httpx.Limits(max_connections=None, max_keepalive_connections=100)  # the model's own cap decides
_ONE = httpx.Limits(max_connections=1, max_keepalive_connections=1)

_NO_KEY = "no-key-needed"  # sent to a server of the user's own that asks for none
_OPTIONS = {"extra_headers": "headers", "extra_query": "params", "extra_body": "extra_json", "timeout": "timeout"}
# The size limit of a reply follows from the request: reading costs time and memory in proportion to the size.
_FRAME = 64 << 10  # bytes of a reply around its tokens
_TOKEN = 128  # bytes of a token, escaped, with its share of a reasoning text
_LISTED = 128  # bytes of a token that is listed with its log-probability
_UNLIMITED = 4096  # tokens of a reply where the model refuses a limit
_CHUNK = 2 << 10  # bytes of an event around its token
_LIMITS = ("max_tokens", "max_completion_tokens")
_LISTS = ("logprobs", "top_logprobs")
_AT_ONCE = 8 << 10  # bytes of a reply that is parsed at once; larger ones are parsed in a thread


class ServerError(ModelError):
    """The server refused a request, or could not be reached. Nothing is chained to it, as clients' errors hold keys.

    Attributes:
        status: of the HTTP reply; None: there was none.
        param: the parameter that the server named in a field of its own; None: it named none.
        retry_after: the seconds of the server's `Retry-After`; None: it sent none.
        unreached: True if the connection failed or broke off.
    """

    def __init__(self, error: Exception) -> None:
        self.status = getattr(error, "status_code", None)
        self.param = getattr(error, "param", None)
        self.retry_after = retry_after(error)
        self.unreached = isinstance(error, (APIConnectionError, httpx.TransportError))
        super().__init__(said_by_server(error))


def may_pass(error: BaseException) -> bool:
    """Tell whether a request may succeed when it is sent again: the server was busy, slow or unreachable."""
    return is_busy(error) or isinstance(error, TimeoutError) or (isinstance(error, ServerError) and error.unreached)


class Connection:
    """One model's connection to its server. Time limits and retries are the caller's (`ModelCaller`).

    Args:
        model: the model's name, for the message.
        base_url: the server; None for OPENAI_BASE_URL or api.openai.com.
        api_key: None for OPENAI_API_KEY.
        chats: True if the chat API is asked; the completions API otherwise.

    Raises:
        ModelError: there is neither a key nor a server that may need none, or the address holds a password or a query.
        TypeError, ValueError: the key or the address is invalid.
    """

    def __init__(self, model: str, base_url: str | None, api_key: str | None, *, chats: bool) -> None:
        if api_key is not None and not isinstance(api_key, str):  # its value is a secret
            raise TypeError(f"api_key must be a str or None, got {type(api_key).__name__}")
        given = base_url or os.environ.get("OPENAI_BASE_URL")
        self.own_server = bool(given)
        self.api_key = api_key or os.environ.get("OPENAI_API_KEY") or (_NO_KEY if self.own_server else None)
        if self.api_key is None:
            raise ModelError(
                f"the model {model!r} on api.openai.com needs a key in OPENAI_API_KEY; for a server of your own give "
                "base_url"
            )
        self._base_url = _checked_address(given) if given else None
        self.address = self._base_url or "api.openai.com"
        self._path = "/chat/completions" if chats else "/completions"
        self._clients = PerLoop(self._new_client)

    async def reply(
        self, request: Mapping[str, Any], read: Callable[[bytes], Result], *, at_once: int = _AT_ONCE
    ) -> Result:
        """Send a request, and return its reply as parsed by `read`, in a thread where the reply is long.

        The client's own types are not used: of a reply with many parts, they make megabytes per part.

        Args:
            request: its fields.
            read: parses the reply; raises ModelError where it is malformed.
            at_once: the most bytes of a short reply; 0 where `read` may take long whatever the length.

        Raises:
            ServerError: the request failed.
            ModelError: the reply is too large, or malformed.
        """
        body = b"".join([piece async for piece in self._body(request, _largest_reply(request))])
        return await _read(read, body, at_once)

    async def events(self, request: Mapping[str, Any]) -> AsyncGenerator[Any, None]:
        """Yield the events of a streamed reply, as JSON objects.

        Raises:
            ServerError, ModelError: as for `reply`; an event is too large or not JSON, or reports an error.
        """
        largest = _largest_reply(request)  # of one event: some servers send all tokens in one
        events, chunks = Events(largest), _tokens(request) * _CHUNK
        async with aclosing(self._body({**request, "stream": True}, largest + chunks)) as pieces:
            async for piece in pieces:
                for data in events.read(piece):
                    yield await _read(parsed, data)
                if events.ended:
                    return
        for data in events.rest():
            yield await _read(parsed, data)

    async def aclose(self) -> None:
        """Close the connections that this event loop's calls have used."""
        client = self._clients.pop()
        if client is not None:
            await client.close()

    async def _body(self, request: Mapping[str, Any], largest: int) -> AsyncGenerator[bytes, None]:
        response = await self._send(request)
        read, failed = 0, None
        try:
            async for piece in response.aiter_bytes():
                read += len(piece)
                if read > largest:
                    raise ModelError(
                        f"the server's reply is larger than {largest:,} bytes, the most that this max_tokens allows "
                        "for: raise it if answers are to be that long"
                    )
                yield piece
        except httpx.HTTPError as error:
            failed = ServerError(error)
        finally:
            await response.aclose()
        if failed is not None:
            raise failed

    async def _send(self, request: Mapping[str, Any]) -> Any:
        """Send a request, and return the response with its body still unread.

        The client adds its key and headers. It does not check the request's fields, one by one, against their types:
        that alone would take a third of the time of the rest.
        """
        given = {name: request[field] for field, name in _OPTIONS.items() if request.get(field) is not None}
        try:
            return await self._clients.here().post(
                self._path,
                cast_to=httpx.Response,
                body={name: value for name, value in request.items() if name not in _OPTIONS},
                options={**given, "security": {"bearer_auth": True}},  # as for completions; no administrator's key
                stream=True,
                stream_cls=AsyncStream[Any],  # required, but never built
            )
        except OpenAIError as error:
            failed = ServerError(error)
        raise failed

    def _new_client(self) -> AsyncOpenAI:
        """Make one event loop's client: connections belong to the loop that opened them."""
        return AsyncOpenAI(
            api_key=self.api_key, base_url=self._base_url, timeout=None, max_retries=0, http_client=Client()
        )


async def _read(read: Callable[[bytes], Result], body: bytes, at_once: int = _AT_ONCE) -> Result:
    return read(body) if len(body) <= at_once else await in_thread(read, body)


def _checked_address(address: str) -> str:
    """Return a server's address, if it holds nothing that may be secret: it ends up in logs and certificates.

    Raises:
        ValueError: it is not an HTTP address.
        ModelError: it holds a password, a query or a fragment.
    """
    if not isinstance(address, str) or not address.lower().startswith(("http://", "https://")):
        shown = str(address).rpartition("@")[2]
        raise ValueError(f"base_url={redacted(shown)!r:.80} must start with http:// or https://")
    parts = urlsplit(address)
    host = parts.netloc.rpartition("@")[2]
    shown = redacted(f"{parts.scheme}://{host}{parts.path}")
    if not parts.hostname:
        raise ValueError(
            f"base_url={shown!r:.80} names no host; give the server's address, such as http://host:8000/v1"
        )
    if parts.query or parts.fragment or "@" in parts.netloc:
        raise ModelError(
            f"base_url holds a password, a query or a fragment (around {shown}): leave it out, and give a key as "
            "api_key or options={'extra_headers': {...}}, anything else as options={'extra_query': {...}}"
        )
    return address


def _largest_reply(request: Mapping[str, Any]) -> int:
    """Return the most bytes of a whole reply."""
    listed = _most(request, _LISTS)
    return _FRAME + _tokens(request) * (_TOKEN + (_LISTED * (listed + 1) if listed else 0))


def _tokens(request: Mapping[str, Any]) -> int:
    """Return the most tokens of a reply."""
    return _most(request, _LIMITS) or _UNLIMITED


def _most(request: Mapping[str, Any], names: tuple[str, ...]) -> int:
    """Return the largest number under one of these names; `extra_body` is a part of the request."""
    extra = request.get("extra_body")
    parts = (request, extra if isinstance(extra, Mapping) else {})
    return max(
        (int(part[name]) for part in parts for name in names if isinstance(part.get(name), (int, float))), default=0
    )


class ReplyRefused(OpenAIError):  # type: ignore[misc]
    """A reply that is refused unread; a retry would not help."""


class Client(DefaultAsyncHttpxClient):  # type: ignore[misc]
    """An HTTP client whose replies are read piece by piece by the caller, of an error's body only the beginning."""

    def __init__(self) -> None:
        super().__init__(
            timeout=None,  # the caller limits a whole try; HTTP clients' limits are for one read
            limits=_NO_LIMITS,
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
