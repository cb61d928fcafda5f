"""One request and its response: read within bounds, cancelled when the client leaves, answered whole or in pieces.

A request has no place before all of it is there, so clients that send slowly keep nobody waiting; what they sent is
bounded by itself. A complete one takes a place, waits for its turn, and is worked on until it is answered, its time is
over, or its client hangs up. When the server stops, those that are not answered yet are sent away with 503.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Any, NoReturn

import anyio
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse
from starlette.types import Receive, Scope, Send

from robustrag_integrations._util.json_values import valid_text
from robustrag_integrations.serve.errors import RequestError, request_error
from robustrag_integrations.serve.limits import Limits

Work = Callable[[dict[str, Any], "Reply"], Coroutine[Any, Any, None]]

_LOG = logging.getLogger(__name__)
_HEADERS = {"cache-control": "no-store", "x-content-type-options": "nosniff"}
_LAST_WORDS = 5  # seconds


class Admission:
    """Limits the requests under way; used in one event loop.

    Attributes:
        limits: the bounds.
        stopped: True if the server is about to stop.
    """

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.stopped = False
        self._turns = asyncio.Semaphore(limits.concurrent)
        self._free = limits.concurrent + limits.waiting
        self._unfinished: dict[anyio.CancelScope, bytearray] = {}

    def stop(self) -> None:
        """Refuse all requests that are not answered yet."""
        if not self.stopped:
            self.stopped = True
            for scope in self._unfinished:
                scope.cancel()
            for _ in range(self.limits.waiting):
                self._turns.release()

    async def read(self, request: Request) -> dict[str, Any]:
        """Read a request's JSON object.

        Raises:
            RequestError: it is too long, comes too slowly, or is not a JSON object.
            ClientDisconnect: the client hung up before it was complete.
        """
        maximum, headers = self.limits.body_bytes, request.headers
        too_long = RequestError(413, f"the request is longer than {maximum} bytes", code="request_too_large")
        if headers.get("content-type", "").split(";")[0].strip().lower() != "application/json":
            raise RequestError(415, "the request must have Content-Type: application/json")
        if headers.get("content-encoding", "identity") != "identity":
            raise RequestError(415, "the request must not be compressed")
        announced = headers.get("content-length", "0")
        # The length is checked first: turning thousands of digits into a number takes time.
        if len(announced) > 18 or not announced.isdecimal() or int(announced) > maximum:
            raise too_long
        body = bytearray()
        with anyio.move_on_after(self.limits.body_seconds) as scope:
            self._unfinished[scope] = body
            try:
                async for piece in request.stream():
                    body += piece
                    if len(body) > maximum:
                        raise too_long
                    if sum(map(len, self._unfinished.values())) > max(maximum, self.limits.unfinished_bytes):
                        next(iter(self._unfinished)).cancel()
            finally:
                del self._unfinished[scope]
        if scope.cancelled_caught:
            self._refuse_if_stopped()
            message = (
                f"the request was not complete after {self.limits.body_seconds} s, or when others needed the memory"
            )
            raise RequestError(408, message, retry_after=1, closes=True)
        return json_object(bytes(body))

    @contextmanager
    def place(self) -> Iterator[None]:
        """Hold a place among the requests that are answered or wait.

        Raises:
            RequestError: there is none left.
        """
        self._refuse_if_stopped()
        if self._free == 0:
            message = "too many requests are under way; try again later"
            raise RequestError(429, message, kind="rate_limit_error", code="rate_limit_exceeded", retry_after=1)
        self._free -= 1
        try:
            yield
        finally:
            self._free += 1

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Wait until there is room to answer.

        Raises:
            RequestError: the server stops.
        """
        async with self._turns:
            self._refuse_if_stopped()
            yield

    def _refuse_if_stopped(self) -> None:
        if self.stopped:
            raise _stopping()


def _stopping() -> RequestError:
    return RequestError(503, "the server stops; try again", kind="server_error", retry_after=1, closes=True)


def json_object(body: bytes) -> dict[str, Any]:
    """Parse a JSON object from its bytes, in valid Unicode.

    Raises:
        RequestError: it is not one, nests too deep, names an entry twice, or holds NaN or Infinity.
    """
    try:
        value = _valid(json.loads(body.decode(), parse_constant=_refuse_constant, object_pairs_hook=_object))
    except RecursionError:
        raise RequestError(400, "the JSON nests too deep") from None
    except UnicodeDecodeError:
        raise RequestError(400, "the request is not valid UTF-8") from None
    except json.JSONDecodeError as error:
        raise RequestError(400, f"the request is not valid JSON: {error.msg} at character {error.pos}") from None
    except ValueError:  # more digits than Python reads
        raise RequestError(400, "the JSON holds a number that is too long") from None
    if not isinstance(value, dict):
        raise RequestError(400, f"the request must be a JSON object, got {type(value).__name__}")
    return value


def _valid(value: Any) -> Any:
    if isinstance(value, str):
        return valid_text(value)
    if isinstance(value, list):
        return list(map(_valid, value))
    if isinstance(value, dict):
        return {valid_text(name): _valid(held) for name, held in value.items()}
    return value


def _refuse_constant(name: str) -> NoReturn:
    raise RequestError(400, f"{name} is not JSON")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Build an object, and refuse repeated names: another program may have checked the other entry."""
    made = dict(pairs)
    if len(made) < len(pairs):
        raise RequestError(400, "the JSON names an entry twice")
    return made


class JSONReply(JSONResponse):
    """A JSON response in ASCII, which is not cached."""

    def __init__(self, body: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(body, status, {**_HEADERS, **(headers or {})})

    @classmethod
    def refusing(cls, error: RequestError) -> JSONReply:
        """Return an error response."""
        return cls(error.body, error.status, error.headers)

    def render(self, content: Any) -> bytes:
        """Render JSON in ASCII: no line separator in a document can end an event early."""
        return json.dumps(content, ensure_ascii=True, allow_nan=False).encode()


class Reply:
    """The response to one client: whole, or a stream of events.

    Attributes:
        started: True if anything was sent.
    """

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._asgi = scope, receive, send
        self.started = False

    async def respond(self, body: Any) -> None:
        """Send a whole response."""
        self.started = True
        await JSONReply(body)(*self._asgi)

    async def event(self, body: Mapping[str, Any]) -> None:
        """Send an event; the first one opens the stream."""
        *_, send = self._asgi
        data = bytes(JSONReply(body).body)
        if not self.started:
            self.started = True
            headers = {"content-type": "text/event-stream; charset=utf-8", "x-accel-buffering": "no", **_HEADERS}
            listed = [(name.encode(), value.encode()) for name, value in headers.items()]
            await send({"type": "http.response.start", "status": 200, "headers": listed})
        await send({"type": "http.response.body", "body": b"data: %b\n\n" % data, "more_body": True})

    async def end(self, last: bytes = b"data: [DONE]\n\n") -> None:
        """Close the stream; only a complete one ends with `[DONE]`."""
        *_, send = self._asgi
        await send({"type": "http.response.body", "body": last})

    async def fail(self, error: RequestError) -> None:
        """Send an error within a stream, and close it. A client that does not read is dropped."""

        async def last_words() -> None:
            await self.event(error.body)
            await self.end(b"")

        with suppress(TimeoutError, asyncio.TimeoutError):
            await asyncio.wait_for(last_words(), _LAST_WORDS)


class Endpoint:
    """An ASGI application for one route.

    Args:
        work: answers a request's JSON; cancelled when the client hangs up or the time is over.
        admission: the bounds of all requests.
    """

    def __init__(self, work: Work, admission: Admission) -> None:
        self._work = work
        self._admission = admission

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request. Errors go to the middleware, except in the middle of a stream."""
        reply = Reply(scope, receive, send)
        try:
            body = await self._admission.read(Request(scope, receive))
            with self._admission.place():
                work = asyncio.wait_for(self._work(body, reply), self._admission.limits.seconds)
                await _unless_gone(receive, work)
            return
        except ClientDisconnect:
            _LOG.info("the client hung up")
            return
        except asyncio.CancelledError:
            if not self._admission.stopped:
                raise
            failed: Exception = _stopping()  # the server waits no longer
        except Exception as error:
            failed = error
        if not reply.started:
            raise failed
        await reply.fail(request_error(failed))


async def _unless_gone(receive: Receive, work: Awaitable[None]) -> None:
    """Do the work; cancel it when the client disconnects.

    Raises:
        ClientDisconnect: the client hung up.
    """

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
