"""One request and its response: read within bounds, cancelled when the client leaves, answered whole or in pieces.

A request has no place before all of it is there, so clients that send slowly keep nobody waiting. A complete one waits
for its turn, and is worked on until it is answered, its time is over, its client hangs up, or the server stops.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import anyio
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse
from starlette.types import Receive, Scope, Send

from robustrag_integrations._util.display import printable
from robustrag_integrations._util.errors import ModelError, QuorumError, RobustRAGError, TrustedError
from robustrag_integrations._util.json_values import parsed, valid_text
from robustrag_integrations._util.redaction import redacted

Work = Callable[[dict[str, Any], "Reply"], Coroutine[Any, Any, None]]

_LOG = logging.getLogger(__name__)
_HEADERS = {"cache-control": "no-store", "x-content-type-options": "nosniff"}
_LAST_WORDS = 5  # seconds


@dataclass(frozen=True)
class Limits:
    """Bounds of one request, and of all requests under way."""

    body_bytes: int = 1_000_000
    question_chars: int = 4_000
    concurrent: int = 8  # answers that are made at a time
    waiting: int = 256  # requests that wait for their turn; further ones are refused with 429
    seconds: int = 120  # from a request's end to the end of its answer, waiting included
    body_seconds: int = 20  # that a client may take to send a request


class RequestError(Exception):
    """A request that is refused with an HTTP status, a message that is shown, and OpenAI's code and parameter."""

    def __init__(
        self, status: int, message: str, code: str | None = None, param: str | None = None, **headers: str
    ) -> None:
        super().__init__(message)
        self.status, self.headers = status, {name.replace("_", "-"): value for name, value in headers.items()}
        kind = "rate_limit_error" if status == 429 else "server_error" if status >= 500 else "invalid_request_error"
        said, about = printable(redacted(message), 1000), param and printable(param, 100)
        self.body: dict[str, Any] = {"error": {"message": said, "type": kind, "param": about, "code": code}}


def request_error(error: Exception) -> RequestError:
    """Return the error that a client is sent. The log gets only the failure's class: its text may quote passages."""
    if isinstance(error, RequestError):
        return error
    _LOG.error("no answer: %s", type(error.__cause__ or error).__name__)
    if isinstance(error, (TimeoutError, asyncio.TimeoutError)):
        return RequestError(504, "the answer took too long; ask again later", code="timeout")
    if isinstance(error, TrustedError):
        return RequestError(502, "no answer: the trusted documents gave none that can be read", "trusted_failed")
    if isinstance(error, ModelError):  # without the words of the model's server, which may quote passages
        failed = str(error).partition(". ")[0] if isinstance(error, QuorumError) else "the model failed"
        return RequestError(502, f"no answer: {failed}", "model_failed")
    if isinstance(error, (ValueError, RobustRAGError)):  # a question too long for the model, bad choices
        return RequestError(400, str(error))
    return RequestError(500, "the server failed; its log names the kind of error")


class Admission:
    """Limits the requests that are answered or wait; used in one event loop."""

    def __init__(self, limits: Limits) -> None:
        self._turns = asyncio.Semaphore(limits.concurrent)
        self._free = limits.concurrent + limits.waiting

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Wait until there is room to answer; raises RequestError where too many wait already."""
        if self._free == 0:
            message = "too many requests are under way; try again later"
            raise RequestError(429, message, "rate_limit_exceeded", retry_after="1")
        self._free -= 1
        try:
            async with self._turns:
                yield
        finally:
            self._free += 1


async def _read_body(request: Request, limits: Limits) -> dict[str, Any]:
    most, headers = limits.body_bytes, request.headers
    if headers.get("content-type", "").split(";")[0].strip().lower() != "application/json":
        raise RequestError(415, "the request must have Content-Type: application/json")
    if headers.get("content-encoding", "identity") != "identity":
        raise RequestError(415, "the request must not be compressed")
    body = bytearray()
    with anyio.move_on_after(limits.body_seconds) as scope:
        async for piece in request.stream():
            body += piece
            if len(body) > most:
                raise RequestError(413, f"the request is longer than {most} bytes", code="request_too_large")
    if scope.cancelled_caught:
        message = f"the request was not complete after {limits.body_seconds} s"
        raise RequestError(408, message, retry_after="1", connection="close")
    return _json_object(bytes(body))


def _json_object(body: bytes) -> dict[str, Any]:
    try:
        value = _valid(parsed(body.decode(), object_pairs_hook=_object))
    except (ValueError, RecursionError):  # ValueErrors are those of UTF-8 and of numbers with too many digits, too
        value = None
    if not isinstance(value, dict):
        wrong = "the request must be a JSON object in UTF-8, with each name once, without NaN, and not too deep"
        raise RequestError(400, wrong)
    return value


def _valid(value: Any) -> Any:
    if isinstance(value, str):
        return valid_text(value)
    if isinstance(value, list):
        return list(map(_valid, value))
    if isinstance(value, dict):
        return {valid_text(name): _valid(held) for name, held in value.items()}
    return value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):  # another program may have checked the other entry
        raise ValueError
    return made


class JSONReply(JSONResponse):
    """A JSON response in ASCII, which is not cached."""

    def __init__(self, body: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(body, status, {**_HEADERS, **(headers or {})})

    def render(self, content: Any) -> bytes:
        """Render JSON in ASCII: no line separator in a document can end an event early."""
        return json.dumps(content, ensure_ascii=True, allow_nan=False).encode()


class Reply:
    """The response to one client: whole, or a stream of events; `started` once anything was sent."""

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._asgi = scope, receive, send
        self._send = send
        self.started = False

    async def respond(self, body: Any) -> None:
        """Send a whole response."""
        self.started = True
        await JSONReply(body)(*self._asgi)

    async def event(self, body: Mapping[str, Any]) -> None:
        """Send an event; the first one opens the stream."""
        data = bytes(JSONReply(body).body)
        if not self.started:
            self.started = True
            headers = {"content-type": "text/event-stream; charset=utf-8", "x-accel-buffering": "no", **_HEADERS}
            listed = [(name.encode(), value.encode()) for name, value in headers.items()]
            await self._send({"type": "http.response.start", "status": 200, "headers": listed})
        await self._send({"type": "http.response.body", "body": b"data: %b\n\n" % data, "more_body": True})

    async def end(self, last: bytes = b"data: [DONE]\n\n") -> None:
        """Close the stream; only a complete one ends with `[DONE]`."""
        await self._send({"type": "http.response.body", "body": last})


class Endpoint:
    """An ASGI application for one route, whose work is cancelled when the client hangs up or the time is over."""

    def __init__(self, work: Work, limits: Limits) -> None:
        self._work = work
        self._limits = limits

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request. Errors go to the middleware, except in the middle of a stream."""
        reply = Reply(scope, receive, send)
        try:
            body = await _read_body(Request(scope, receive), self._limits)
            await _unless_gone(receive, asyncio.wait_for(self._work(body, reply), self._limits.seconds))
            return
        except ClientDisconnect:
            _LOG.info("the client hung up")
            return
        except asyncio.CancelledError:  # the server stops, and waits no longer
            failed: Exception = RequestError(503, "the server stops; try again", retry_after="1", connection="close")
        except Exception as error:
            failed = error
        if not reply.started:
            raise failed
        with anyio.move_on_after(_LAST_WORDS):  # a client that does not read is dropped
            await reply.event(request_error(failed).body)
            await reply.end(b"")


async def _unless_gone(receive: Receive, work: Awaitable[None]) -> None:
    """Do the work; cancel it, and raise ClientDisconnect, when the client hangs up."""

    async def gone() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass

    working, leaving = asyncio.ensure_future(work), asyncio.create_task(gone())
    try:
        await asyncio.wait({working, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise ClientDisconnect
        await working
    finally:
        for task in (working, leaving):
            task.cancel()
        await asyncio.gather(working, leaving, return_exceptions=True)
