"""One request and its reply: read within bounds, worked on while the client waits, answered whole or in pieces."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Coroutine, Mapping, MutableMapping
from contextlib import suppress
from typing import Any

from starlette.responses import JSONResponse

from robustrag_integrations.serve.admission import Admission, ClientGoneError, Receive, stopping_error
from robustrag_integrations.serve.errors import RequestError, request_error

Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Work = Callable[[dict[str, Any], "Reply"], Coroutine[Any, Any, None]]

_LOG = logging.getLogger(__name__)
_HEADERS = {"cache-control": "no-store", "x-content-type-options": "nosniff"}
_LAST_WORDS = 5  # seconds


class JSONReply(JSONResponse):
    """A JSON response in ASCII, which is not cached."""

    def __init__(self, body: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(body, status, {**_HEADERS, **(headers or {})})

    def render(self, content: Any) -> bytes:
        """Its bytes."""
        return _json(content)


def error_reply(error: RequestError) -> JSONReply:
    """A response that says why there is no answer."""
    return JSONReply(error.body, error.status, error.headers)


class Reply:
    """What is sent to one client.

    Attributes:
        started: whether anything was.
    """

    def __init__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        self._scope, self._receive, self._send = scope, receive, send
        self.started = False

    async def respond(self, response: JSONReply) -> None:
        """Send a whole response."""
        self.started = True
        await response(self._scope, self._receive, self._send)

    async def event(self, body: Mapping[str, Any]) -> None:
        """Send an event; the first one opens the stream."""
        if not self.started:
            self.started = True
            headers = {"content-type": "text/event-stream; charset=utf-8", "x-accel-buffering": "no", **_HEADERS}
            listed = [(name.encode(), value.encode()) for name, value in headers.items()]
            await self._send({"type": "http.response.start", "status": 200, "headers": listed})
        await self._send({"type": "http.response.body", "body": b"data: %b\n\n" % _json(body), "more_body": True})

    async def end(self, *, complete: bool) -> None:
        """Close the stream; only a complete one ends with `[DONE]`."""
        await self._send({"type": "http.response.body", "body": b"data: [DONE]\n\n" if complete else b""})

    async def fail(self, error: RequestError) -> None:
        """Say why there is no answer; within a stream as its last event. A client that does not read is left."""
        with suppress(TimeoutError, asyncio.TimeoutError):
            await asyncio.wait_for(self._fail(error), _LAST_WORDS)

    async def _fail(self, error: RequestError) -> None:
        if not self.started:
            await self.respond(error_reply(error))
        else:
            await self.event(error.body)
            await self.end(complete=False)


def _json(body: Any) -> bytes:
    """JSON in ASCII: no line separator of a document ends an event early."""
    return json.dumps(body, ensure_ascii=True, allow_nan=False).encode()


class Endpoint:
    """An ASGI application for one address. Whatever goes wrong, the client is told in OpenAI's shape.

    Args:
        work: answers a request's JSON; cancelled when the client hangs up or the time is over.
        admission: how many are answered at a time, and how long they may be and take.
    """

    def __init__(self, work: Work, admission: Admission) -> None:
        self._work = work
        self._admission = admission

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        """Answer one request."""
        reply = Reply(scope, receive, send)
        try:
            body = await self._admission.read(dict(scope["headers"]), receive)
            with self._admission.place():
                seconds = self._admission.limits.seconds
                await _unless_gone(receive, asyncio.wait_for(self._work(body, reply), seconds))
        except ClientGoneError:
            _LOG.info("the client hung up")
        except asyncio.CancelledError:
            if not self._admission.stopped:
                raise
            await reply.fail(stopping_error())  # the server waits no longer
        except Exception as error:
            refusal = request_error(error)
            if error is not refusal:
                _LOG.error("no answer: %s", type(error).__name__)  # its text may quote passages
            await reply.fail(refusal)


async def _unless_gone(receive: Receive, work: Coroutine[Any, Any, None]) -> None:
    """Do the work; when the client hangs up, cancel it.

    Raises:
        ClientGoneError: the client hung up.
    """
    working, leaving = asyncio.create_task(work), asyncio.create_task(_gone(receive))
    try:
        await asyncio.wait({working, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise ClientGoneError
        await working
    finally:
        for task in (working, leaving):
            task.cancel()
        await asyncio.gather(working, leaving, return_exceptions=True)


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
