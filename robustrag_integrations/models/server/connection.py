"""Connections to an OpenAI-compatible server: key, address, a client per event loop, replies of bounded size."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from typing import Any, Literal, TypeVar
from urllib.parse import urlsplit

try:
    from openai import APIConnectionError, AsyncOpenAI, AsyncStream, OpenAIError
except ImportError as error:
    raise ImportError("this model needs the openai client: pip install 'robustrag-integrations[openai]'") from error

from robustrag_integrations._util.redaction import redacted
from robustrag_integrations.errors import ModelError
from robustrag_integrations.models.client_errors import is_busy, retry_after
from robustrag_integrations.models.event_loops import PerLoop
from robustrag_integrations.models.server.http_client import Client, httpx
from robustrag_integrations.models.server.replies import Events, parsed, said_by_server
from robustrag_integrations.models.thread_pool import POOL

Result = TypeVar("Result")

_NO_KEY = "no-key-needed"  # sent to a server of the user's own that asks for none
_OPTIONS = {"extra_headers": "headers", "extra_query": "params", "extra_body": "extra_json", "timeout": "timeout"}
# The size limit of a reply follows from the request: reading costs time and memory in proportion to the size.
_FRAME = 64 << 10  # bytes of a reply around its tokens
_TOKEN = 128  # bytes of a token, escaped, with its share of a reasoning text
_LISTED = 128  # bytes of a token that is listed with its log-probability
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
        self, request: Mapping[str, Any], largest: int, read: Callable[[bytes], Result], *, at_once: int = _AT_ONCE
    ) -> Result:
        """Send a request, and return its reply as parsed by `read`, in a thread where the reply is long.

        The client's own types are not used: of a reply with many parts, they make megabytes per part.

        Args:
            request: its fields.
            largest: the most bytes of the reply.
            read: parses the reply; raises ModelError where it is malformed.
            at_once: the most bytes of a short reply; 0 where `read` may take long whatever the length.

        Raises:
            ServerError: the request failed.
            ModelError: the reply is too large, or malformed.
        """
        body = b"".join([piece async for piece in self._body(request, largest)])
        return await _read(read, body, at_once)

    async def events(self, request: Mapping[str, Any], largest: int, largest_event: int) -> AsyncGenerator[Any, None]:
        """Yield the events of a streamed reply, as JSON objects.

        Raises:
            ServerError, ModelError: as for `reply`; an event is too large or not JSON, or reports an error.
        """
        events = Events(largest_event)
        async with aclosing(self._body({**request, "stream": True}, largest)) as pieces:
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
        body = {name: value for name, value in request.items() if name not in _OPTIONS}
        response = await self._send("post", self._path, request, body=body)
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

    async def _send(self, method: Literal["get", "post"], path: str, request: Mapping[str, Any], **more: Any) -> Any:
        """Send a request, and return the response with its body still unread.

        The client adds its key and headers. It does not check the request's fields, one by one, against their types:
        that alone would take a third of the time of the rest.
        """
        given = {name: request[field] for field, name in _OPTIONS.items() if request.get(field) is not None}
        try:
            return await getattr(self._clients.here(), method)(
                path,
                cast_to=httpx.Response,
                options={**given, "security": {"bearer_auth": True}},  # as for completions; no administrator's key
                stream=True,
                stream_cls=AsyncStream[Any],  # required, but never built
                **more,
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
    return read(body) if len(body) <= at_once else await asyncio.wrap_future(POOL.submit(read, body))


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


def largest_reply(request: Mapping[str, Any]) -> int:
    """Return the most bytes of a whole reply, or of one event of a stream: some servers send all tokens in one."""
    return _FRAME + _most(request, _LIMITS) * _per_token(request)


def largest_stream(request: Mapping[str, Any]) -> int:
    """Return the most bytes of a stream of events, one for each token."""
    return _FRAME + _most(request, _LIMITS) * (_CHUNK + _per_token(request))


def _per_token(request: Mapping[str, Any]) -> int:
    listed = _most(request, _LISTS)
    return _TOKEN + (_LISTED * (listed + 1) if listed else 0)


def _most(request: Mapping[str, Any], names: tuple[str, ...]) -> int:
    """Return the largest number under one of these names; `extra_body` is a part of the request."""
    extra = request.get("extra_body")
    parts = (request, extra if isinstance(extra, Mapping) else {})
    return max(
        (int(part[name]) for part in parts for name in names if isinstance(part.get(name), (int, float))), default=0
    )
