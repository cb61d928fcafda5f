"""How an OpenAI-compatible server is reached: key, clients, and a thread for synchronous callers."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from typing import Any, TypeVar
from urllib.parse import unquote, urlsplit, urlunsplit

try:
    from openai import AsyncOpenAI, AsyncStream, OpenAIError
except ImportError as error:
    raise ImportError("this model needs the openai client: pip install 'robustrag-integrations[openai]'") from error

from robustrag_integrations.errors import ModelError
from robustrag_integrations.models.limits import await_within
from robustrag_integrations.models.per_loop import PerLoop
from robustrag_integrations.models.refused import named_parameter
from robustrag_integrations.models.retry import long_pause
from robustrag_integrations.models.server.bounded_client import DEADLINE, LARGEST, BoundedClient
from robustrag_integrations.models.server.events import Events
from robustrag_integrations.models.server.http_library import httpx
from robustrag_integrations.models.server.replies import parsed, said_by_server
from robustrag_integrations.models.thread_pool import POOL
from robustrag_integrations.redaction import redacted

Result = TypeVar("Result")

_NO_KEY = "no-key-needed"  # what the client sends to a server of the user's own that asks for none
_OPTIONS = {"extra_headers": "headers", "extra_query": "params", "extra_body": "extra_json", "timeout": "timeout"}
_LIST_OF_MODELS = 16 << 20  # bytes
_AT_ONCE = 8 << 10  # bytes of a reply that are read in no time; larger ones are read in a thread


class ServerError(ModelError):
    """The server refused a request, or could not be reached.

    Attributes:
        status: of the HTTP reply; None: there was none.
        param: the parameter that the server named beside its words; None: it named none that is known here.
    """

    def __init__(self, words: str, status: int | None, param: str | None = None) -> None:
        self.status = status
        self.param = param
        super().__init__(words)


class Connection:
    """A server as one model uses it.

    Args:
        model: the model's name, for the message.
        base_url: the server; None for OPENAI_BASE_URL or api.openai.com.
        api_key: None for OPENAI_API_KEY.
        chats: whether the chat API is asked, or the completions API.
        timeout: seconds for one try, reading and understanding the reply included.
        attempts: tries in all.

    Raises:
        ModelError: there is neither a key nor a server that may need none, or the server's address holds a query.
        TypeError, ValueError: the key or the address is none.
    """

    def __init__(
        self, model: str, base_url: str | None, api_key: str | None, *, chats: bool, timeout: float, attempts: int
    ) -> None:
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
        self._base_url: str | None = None
        self._auth: tuple[str, str] | None = None
        if given:
            self._base_url, self._auth = _without_password(given)
        self.address = self._base_url or "api.openai.com"
        self._password = self._auth[1] if self._auth else None
        self._chats, self._timeout, self._attempts = chats, timeout, attempts
        self._clients = PerLoop(self._new_client)

    async def reply(
        self, request: Mapping[str, Any], largest: int, read: Callable[[bytes], Result], *, at_once: int = _AT_ONCE
    ) -> Result:
        """What `read` makes of the reply to a request; it runs in a thread where the reply is not a short one.

        The reply is not given to the client's own types: of a reply with many parts they make megabytes per part.

        Args:
            request: its fields.
            largest: bytes of the reply.
            read: raises ModelError where the reply is not as it should be.
            at_once: bytes of a reply that is short; 0 where `read` may take long whatever the length.

        Raises:
            ModelError: the request failed, or the reply is too large, too late, or not as it should be.
        """
        response = await self._send(request, largest)
        return await self._read(read, response.content, response.extensions[DEADLINE], at_once)

    async def events(self, request: Mapping[str, Any], largest: int, largest_event: int) -> AsyncGenerator[Any, None]:
        """The events of a streamed reply, as JSON objects.

        Raises:
            ModelError: as for `reply`; an event is too large or not JSON, or says that something went wrong.
        """
        response = await self._send({**request, "stream": True}, largest)
        found = Events(largest_event)
        failed: ModelError | None = None
        try:
            pieces = response.aiter_bytes()
            async for piece in pieces:
                for data in found.read(piece):
                    yield await self._read(parsed, data, response.extensions[DEADLINE])
                if found.ended:
                    break
            for data in found.rest():
                yield await self._read(parsed, data, response.extensions[DEADLINE])
        except ModelError:
            raise
        except Exception as error:  # of the HTTP client
            failed = ServerError(said_by_server(error), None)
        finally:
            await response.aclose()
        if failed is not None:
            raise failed

    async def _send(self, request: Mapping[str, Any], largest: int) -> Any:
        """The HTTP response to a request, after as many tries as there may be; read, unless it is to be a stream.

        The client adds its key and headers, and tries again. It is not let through the request's fields, one by one by
        their types: that alone would take a third of the time of the rest.
        """
        allowed = LARGEST.set(largest)
        try:
            return await self._clients.here().post(
                "/chat/completions" if self._chats else "/completions",
                cast_to=httpx.Response,
                body={name: value for name, value in request.items() if name not in _OPTIONS},
                options=_options(request),
                stream=bool(request.get("stream")),
                stream_cls=AsyncStream[Any],  # it wants one, and makes none
            )
        except OpenAIError as error:  # it holds the request and its key: nothing may be chained to it
            words = said_by_server(error) + long_pause(error)
            failed = ServerError(words, getattr(error, "status_code", None), named_parameter(error))
        finally:
            LARGEST.reset(allowed)
        raise failed

    async def _read(
        self, read: Callable[[bytes], Result], body: bytes, deadline: float, at_once: int = _AT_ONCE
    ) -> Result:
        if len(body) <= at_once:
            return read(body)
        reading = asyncio.wrap_future(POOL.submit(read, body))
        try:
            return await await_within(max(0.0, deadline - time.monotonic()), reading)
        except TimeoutError:
            late = f"the reply was not there and read within {self._timeout:g} s"
        raise ModelError(late)

    def _new_client(self) -> AsyncOpenAI:
        """One event loop's client: connections belong to the loop that opened them."""
        return AsyncOpenAI(
            api_key=self.api_key,
            base_url=self._base_url,
            timeout=self._timeout,
            max_retries=self._attempts - 1,
            http_client=BoundedClient(self._timeout, self._auth),
        )

    async def open(self) -> None:
        """Make this event loop's client and open a connection; whatever the server says to the request will do.

        Raises:
            ModelError: the server could not be reached.
        """
        failed: ModelError | None = None
        allowed = LARGEST.set(_LIST_OF_MODELS)
        try:
            await self._clients.here().get(
                "/models", cast_to=httpx.Response, options={**_options({}), "max_retries": 0}
            )
        except OpenAIError as error:  # nothing is chained to it, as in `_send`
            if getattr(error, "status_code", None) is None:
                failed = ServerError(said_by_server(error), None)
        finally:
            LARGEST.reset(allowed)
        if failed is not None:
            raise failed

    async def aclose(self) -> None:
        """Close the connections that this event loop's calls have used."""
        client = self._clients.pop()
        if client is not None:
            await client.close()


def _options(request: Mapping[str, Any]) -> Any:
    """What of a request is not its body, under the names that the client has for it."""
    given = {name: request[field] for field, name in _OPTIONS.items() if request.get(field) is not None}
    return {**given, "security": {"bearer_auth": True}}  # as for every completion, and no administrator's key


def _without_password(address: str) -> tuple[str, tuple[str, str] | None]:
    """An address without the user and password in it, which would stand in logs and certificates; and these.

    Raises:
        ValueError: it is no address.
        ModelError: it holds a query.
    """
    if not isinstance(address, str) or not address.lower().startswith(("http://", "https://")):
        shown = str(address).rpartition("@")[2]
        raise ValueError(f"base_url={redacted(shown)!r:.80} must start with http:// or https://")
    parts = urlsplit(address)
    if parts.query or parts.fragment:  # the client would put the path behind it, and HTTP clients log addresses
        raise ModelError(
            f"base_url ends in a query or fragment (after {redacted(parts.netloc.rpartition('@')[2] + parts.path)}): "
            "leave it out, and give a key as api_key or options={'extra_headers': {...}}, anything else as "
            "options={'extra_query': {...}}"
        )
    user, at, host = parts.netloc.rpartition("@")
    if not parts.hostname:
        shown = f"{parts.scheme}://{host}{parts.path}"
        raise ValueError(
            f"base_url={redacted(shown)!r:.80} names no host; give the server's address, such as http://host:8000/v1"
        )
    if not at:
        return address, None
    name, _, password = user.partition(":")
    return urlunsplit(parts._replace(netloc=host)), (unquote(name), unquote(password))
