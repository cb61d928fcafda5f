"""Connections to an OpenAI-compatible server: key, address, replies of bounded size.

Large and compressed replies are refused. So are redirects: one would send the passages to another host, whose reply
would count. Each request has a client to itself: the HTTP library's own pool looks at all of its connections whenever a
request begins or ends, which takes longer than the rest of it with 640 of them.
"""

from __future__ import annotations

import functools
import json
import os
import ssl
import time
from collections import deque
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing, asynccontextmanager
from typing import Any, TypeVar
from urllib.parse import urlsplit

try:
    import httpx
except ImportError as error:
    raise ImportError("this model needs httpx: pip install 'robustrag-integrations[openai]'") from error

from robustrag_integrations._util.redaction import redacted
from robustrag_integrations.errors import ModelError
from robustrag_integrations.models.caller import is_busy
from robustrag_integrations.models.server.replies import Events, parsed
from robustrag_integrations.models.threads import PerLoop, in_thread

Result = TypeVar("Result")

_LARGEST_ERROR = 64 << 10  # bytes of an error's body that are read
_LONGEST_KEPT = 5.0  # seconds without use, as in httpx: servers hang up on idle connections, uvicorn after 5

_NO_KEY = "no-key-needed"  # sent to a server of the user's own that asks for none
_OF_HTTP = ("extra_headers", "extra_query")
# The size limit of a reply follows from the request: reading costs time and memory in proportion to the size.
_FRAME = 64 << 10  # bytes of a reply around its tokens
_TOKEN = 128  # bytes of a token, escaped, with its share of a reasoning text
_LISTED = 128  # bytes of a token that is listed with its log-probability
_UNLIMITED = 4096  # tokens of a reply where the model refuses a limit
_CHUNK = 2 << 10  # bytes of an event around its token
_AT_ONCE = 8 << 10  # bytes of a reply that is parsed at once; larger ones are parsed in a thread


class ServerError(ModelError):
    """The server refused a request, or could not be reached."""

    status: int | None = None  # None: it could not be reached
    param: Any = None  # the name of a parameter
    retry_after: str | None = None


def may_pass(error: BaseException) -> bool:
    """Tell whether a request may succeed when it is sent again: the server was busy, slow or unreachable."""
    unreached = isinstance(error, ServerError) and error.status is None
    return unreached or is_busy(error) or isinstance(error, TimeoutError)


class Connection:
    """One model's connection to its server. Time limits and retries are the model's."""

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
        self.address = _checked_address(given) if given else "api.openai.com"
        base = given.rstrip("/") if given else "https://api.openai.com/v1"
        self._url = base + ("/chat/completions" if chats else "/completions")
        self._idle = PerLoop(deque[tuple[float, httpx.AsyncClient]])  # since when, the newest last

    async def reply(self, request: Mapping[str, Any], read: Callable[[bytes], Result]) -> Result:
        """Send a request, and return its reply as parsed by `read`, in a thread if it is large; raises ModelError."""
        body = b"".join([piece async for piece in self._body(request, _largest_reply(request))])
        return await _read(read, body)

    async def events(self, request: Mapping[str, Any]) -> AsyncGenerator[Any, None]:
        """Yield the events of a streamed reply, as JSON objects; raises as `reply`, or where one reports an error."""
        largest = _largest_reply(request)  # of one event: some servers send all tokens in one
        events, chunks = Events(largest), _tokens(request) * _CHUNK
        async with aclosing(self._body({**request, "stream": True}, largest + chunks)) as pieces:
            async for piece in pieces:
                for data in events.read(piece):
                    yield await _read(parsed, data)
                if events.ended:
                    return
        for data in events.read(b"\n"):
            yield await _read(parsed, data)

    async def aclose(self) -> None:
        """Close the connections that this event loop's calls have used."""
        for _, client in self._idle.pop() or ():
            await client.aclose()

    @asynccontextmanager
    async def _client(self) -> AsyncGenerator[httpx.AsyncClient, None]:
        """Lend a client for one request; after one that was not read to its end, its connection is closed."""
        idle = self._idle.here()
        client = idle.pop()[1] if idle else _new_client()
        try:
            yield client
        except BaseException:
            await client.aclose()
            raise
        now = time.monotonic()
        if _said_more(client):
            await client.aclose()
        else:
            idle.append((now, client))
        while idle and idle[0][0] < now - _LONGEST_KEPT:
            await idle.popleft()[1].aclose()

    async def _body(self, request: Mapping[str, Any], largest: int) -> AsyncGenerator[bytes, None]:
        """Send a request, and yield the body of its reply. Nothing is chained to errors, as the client's hold keys."""
        fields = {name: value for name, value in request.items() if name not in _OF_HTTP}
        try:
            async with (
                self._client() as client,
                client.stream(
                    "POST",
                    self._url,
                    params=request.get("extra_query"),
                    headers={"Authorization": f"Bearer {self.api_key}", **(request.get("extra_headers") or {})},
                    json=fields,
                ) as response,
            ):
                coding = response.headers.get("Content-Encoding", "").strip().lower()
                if coding not in ("", "identity"):
                    raise ModelError(f"the server compressed its reply ({coding[:20]}) though it was asked not to")
                if not response.is_success:
                    raise server_error(response.status_code, response.headers, await _beginning(response))
                read = 0
                async for piece in response.aiter_raw():
                    read += len(piece)
                    if read > largest:
                        raise ModelError(
                            f"the server's reply is larger than {largest:,} bytes, the most that this max_tokens "
                            "allows for: raise it if answers are to be that long"
                        )
                    yield piece
                return
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            failed = ServerError(f"the connection failed: {str(error) or type(error).__name__}")
        raise failed


async def _read(read: Callable[[bytes], Result], body: bytes) -> Result:
    return read(body) if len(body) <= _AT_ONCE else await in_thread(read, body)


async def _beginning(response: httpx.Response) -> bytes:
    body = b""
    async for piece in response.aiter_raw():
        body += piece
        if len(body) > _LARGEST_ERROR:
            break
    return body


def server_error(status: int, headers: Mapping[str, str], body: bytes) -> ServerError:
    """Put a reply that is an error into words: the server's own, or that it redirects."""
    try:
        said = json.loads(body)
    except (ValueError, RecursionError):
        said = None
    said = said.get("error", said) if isinstance(said, dict) else None
    said = said if isinstance(said, dict) else {}
    words = said.get("message") or body.decode(errors="replace")
    if 300 <= status < 400:
        words = "redirects are not followed, as the passages would go there: give the address that answers as base_url"
    error = ServerError(f"HTTP {status}: {words}")
    error.status, error.param, error.retry_after = status, said.get("param"), headers.get("Retry-After")
    return error


def _checked_address(address: str) -> str:
    """Return a server's address, if it holds nothing that may be secret: it ends up in logs and certificates."""
    parts = urlsplit(str(address))
    host = parts.netloc.rpartition("@")[2]
    if parts.scheme.lower() not in ("http", "https") or not parts.hostname:
        shown = redacted(str(address).rpartition("@")[2])
        raise ValueError(f"base_url={shown!r:.80} must be the server's address, such as http://host:8000/v1")
    if parts.query or parts.fragment or "@" in parts.netloc:
        raise ModelError(
            f"base_url holds a password, a query or a fragment (around {parts.scheme}://{host}{parts.path}): leave it "
            "out, and give a key as api_key or options={'extra_headers': {...}}, anything else as "
            "options={'extra_query': {...}}"
        )
    return address


def _largest_reply(request: Mapping[str, Any]) -> int:
    """Return the most bytes of a whole reply."""
    listed = _most(request, "logprobs", "top_logprobs")
    return _FRAME + _tokens(request) * (_TOKEN + (_LISTED * (listed + 1) if listed else 0))


def _tokens(request: Mapping[str, Any]) -> int:
    """Return the most tokens of a reply."""
    return _most(request, "max_tokens", "max_completion_tokens") or _UNLIMITED


def _most(request: Mapping[str, Any], *names: str) -> int:
    """Return the largest number under one of these names."""
    return max((int(request[name]) for name in names if isinstance(request.get(name), (int, float))), default=0)


def _new_client() -> httpx.AsyncClient:
    return httpx.AsyncClient(
        timeout=None,  # noqa: S113 - the caller limits a whole try; HTTP clients' limits are for one read
        limits=httpx.Limits(max_connections=1, max_keepalive_connections=1),
        headers={"Accept-Encoding": "identity"},  # a compressed reply would hide its size
        verify=_trusted(),
    )


def _said_more(client: Any) -> bool:
    """Tell whether bytes came behind the last response: they would be read as the next request's reply.

    The HTTP library drops a connection on which bytes come later, but silently keeps these.
    """
    opened = getattr(getattr(client._transport, "_pool", None), "connections", ())
    parsers = [getattr(getattr(one, "_connection", None), "_h11_state", None) for one in opened]
    return any(parser.trailing_data[0] for parser in parsers if parser is not None)


@functools.cache
def _trusted() -> ssl.SSLContext:
    """Read the certificates that are trusted, once: it takes longer than many a call."""
    return httpx.create_ssl_context()
