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
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace
from typing import Any, TypeVar
from urllib.parse import urlsplit

from robustrag_integrations._util.errors import ModelError, missing

try:
    import httpx
except ImportError as error:
    raise missing("this model needs httpx", "openai") from error

from robustrag_integrations._util.redaction import redacted
from robustrag_integrations.models.base import Response
from robustrag_integrations.models.caller import is_busy
from robustrag_integrations.models.reply import Blocks, Ending, calling, chars_of, finish_reason, logprobs_in, usage_of
from robustrag_integrations.models.threads import PerLoop, in_thread

Result = TypeVar("Result")

_LARGEST_ERROR = 64 << 10  # bytes of an error's body that are read
_LONGEST_KEPT = 5.0  # seconds without use, as in httpx: servers hang up on idle connections, uvicorn after 5

_USUAL_END = "which ends in /v1 on most servers"
_NO_KEY = "no-key-needed"  # sent to a server of the user's own that asks for none
_OF_HTTP = ("extra_headers", "extra_query")
# The size limit of a reply follows from the request: reading costs time and memory in proportion to the size.
_FRAME = 64 << 10  # bytes of a reply around its tokens
_TOKEN = 128  # bytes of a token, escaped, with its share of a reasoning text
_LISTED = 128  # bytes of a token that is listed with its log-probability
_UNLIMITED = 4096  # tokens of a reply where the model refuses a limit
_CHUNK = 2 << 10  # bytes of an event around its token
_RAISE = ", the most that this max_tokens allows for: raise it if answers are to be that long"
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

    def __init__(self, model: str, base_url: str | None, api_key: str | None, *, path: str) -> None:
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
        self._url = base + path
        self._idle = PerLoop(deque[tuple[float, httpx.AsyncClient]])  # since when, the newest last

    async def reply(
        self, request: Mapping[str, Any], read: Callable[[bytes], Result], *, largest: int | None = None
    ) -> Result:
        """Send a request, and return its reply as parsed by `read`, in a thread if it is large; raises ModelError.

        `largest` is the most bytes that are read; None: what the request's tokens take.
        """
        most, hint = (largest, "") if largest else (_largest_reply(request), _RAISE)
        body = b"".join([piece async for piece in self._body(request, most, hint)])
        return await _read(read, body)

    async def events(self, request: Mapping[str, Any]) -> AsyncGenerator[Any, None]:
        """Yield the events of a streamed reply, as JSON objects; raises as `reply`, or where one reports an error."""
        largest = _largest_reply(request)  # of one event: some servers send all tokens in one
        events, chunks = Events(largest), _tokens(request) * _CHUNK
        async with aclosing(self._body({**request, "stream": True}, largest + chunks, _RAISE)) as pieces:
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

    async def _body(self, request: Mapping[str, Any], largest: int, hint: str) -> AsyncGenerator[bytes, None]:
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
                        raise ModelError(f"the server's reply is larger than {largest:,} bytes{hint}")
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
    listed = _most(request, "logprobs", "top_logprobs")
    return _FRAME + _tokens(request) * (_TOKEN + (_LISTED * (listed + 1) if listed else 0))


def _tokens(request: Mapping[str, Any]) -> int:
    return _most(request, "max_tokens", "max_completion_tokens") or _UNLIMITED


def _most(request: Mapping[str, Any], *names: str) -> int:
    return max((int(request[name]) for name in names if isinstance(request.get(name), (int, float))), default=0)


def _new_client() -> httpx.AsyncClient:
    return httpx.AsyncClient(
        timeout=None,  # noqa: S113 - the caller limits a whole try; HTTP clients' limits are for one read
        limits=httpx.Limits(max_connections=1, max_keepalive_connections=1),
        headers={"Accept-Encoding": "identity"},  # a compressed reply would hide its size
        verify=_trusted(),
    )


def _said_more(client: Any) -> bool:
    """Tell whether bytes came behind the last response, which would be read as the next request's reply."""
    opened = getattr(getattr(client._transport, "_pool", None), "connections", ())
    parsers = [getattr(getattr(one, "_connection", None), "_h11_state", None) for one in opened]
    return any(parser.trailing_data[0] for parser in parsers if parser is not None)


@functools.cache
def _trusted() -> ssl.SSLContext:
    """Read the certificates that are trusted, once: it takes longer than many a call."""
    return httpx.create_ssl_context()


# --- parsing of untrusted replies, whole or as a stream of events


def parsed(body: bytes) -> Mapping[str, Any]:
    """Parse a reply, or an event of one, as a JSON object that reports no error; a ModelError does not hold it."""
    value: Any = None
    try:
        value = json.loads(body)
        wrong = None if isinstance(value, dict) else f"{type(value).__name__} in place of a completion"
    except (ValueError, RecursionError) as error:  # which hold the body: nothing may be chained to them
        wrong = f"something that is not JSON ({getattr(error, 'msg', type(error).__name__)})"
        if body.lstrip()[:1] == b"<":
            wrong = f"a web page in place of JSON: base_url leads to something else than the model, {_USUAL_END}"
    if wrong is not None:
        raise ModelError(f"the server sent {wrong}")
    if problem := value.get("error"):
        message = problem.get("message") if isinstance(problem, dict) else problem
        raise ModelError(f"the server sent an error: {message}")
    reply: Mapping[str, Any] = value
    return reply


class Events:
    """Extracts the `data` of events, one line each, from a stream of bytes, until it has `ended`."""

    def __init__(self, largest: int) -> None:
        self.ended = False
        self._largest = largest
        self._line = bytearray()

    def read(self, piece: bytes) -> Iterator[bytes]:
        """Yield the events that this piece completes; raises ModelError where one is too large."""
        for part in piece.splitlines(keepends=True):
            self._line += part
            if len(self._line) > self._largest:
                raise ModelError(f"an event of the server's stream is larger than {self._largest:,} bytes")
            if not part.endswith((b"\n", b"\r")):
                return
            line, self._line = bytes(self._line), bytearray()
            data = line[5:].strip() if line.startswith(b"data:") else b""
            self.ended |= data.startswith(b"[DONE]")
            if data and not self.ended:
                yield data


def choice_of(reply: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the first choice of a completion; only one is asked for."""
    choices = reply.get("choices")
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        raise ModelError("the server sent no choices")
    choice: Mapping[str, Any] = choices[0]
    return choice


def response_of(reply: Mapping[str, Any]) -> Response:
    """Convert a chat or text completion into a `Response`; raises ModelError without text or a reason for that."""
    said, choice = Said(), choice_of(reply)
    text = said.piece_of(reply, "message")
    ending = said.ending()
    if not said.has_content and ending.finish in ("stop", "other", "unknown"):
        raise ModelError("the server sent no text")
    logprobs = None if ending.reasoning_chars else logprobs_in(choice.get("logprobs"))  # those of reasoning, too
    return Response.of(text, replace(ending, logprobs=logprobs))


class Said:
    """What a server says, whole or in a stream of chunks, to its end."""

    def __init__(self) -> None:
        self._blocks = Blocks()
        self._begun = False
        self._usage: Any = None
        self._reason: Any = None
        self.has_content = False  # an empty text is one, as are reasoning, a refusal and the call of a tool

    def piece_of(self, chunk: Mapping[str, Any], part: str = "delta") -> str:
        """Return the text of one chunk; empty where it has none."""
        blocks, before, self._begun = self._blocks, len(self._blocks.text), True
        self._usage = chunk.get("usage") or self._usage
        choice = choice_of(chunk) if chunk.get("choices") else {}  # the last chunk has the usage alone
        self._reason = choice.get("finish_reason") or self._reason
        message = choice.get(part)
        message = message if isinstance(message, dict) else {"content": choice.get("text")}
        content = message.get("content")
        if content is not None and not isinstance(content, (str, list)):
            raise ModelError(f"the server sent {type(content).__name__} in place of text")
        blocks.read(content)
        if isinstance(refusal := message.get("refusal"), str) and refusal:
            blocks.refusals.append(refusal)
        traces = (chars_of(message.get(name)) for name in ("reasoning_content", "reasoning", "thinking"))
        blocks.reasoning_chars += next((chars for chars in traces if chars), 0)
        blocks.calls_tools |= bool(message.get("tool_calls") or message.get("function_call"))
        self.has_content |= isinstance(content, str) or blocks != Blocks()
        return "".join(blocks.text[before:])

    def ending(self) -> Ending:
        """Return how it ended."""
        blocks, finish = self._blocks, calling(finish_reason(self._reason), self._blocks.calls_tools)
        usage, chars = usage_of(self._usage), blocks.reasoning_chars
        return Ending(finish=finish, refusal=blocks.refusal, reasoning_chars=chars, usage=usage)

    def end_of_stream(self) -> Ending:
        """Return how the stream ended; raises ModelError where it broke off without saying why."""
        if self._reason is None and not self._begun:
            raise ModelError(f"the server's stream held nothing: base_url may lead elsewhere, {_USUAL_END}")
        if self._reason is None:
            raise ModelError("the server's stream broke off before the answer was complete")
        return self.ending()
