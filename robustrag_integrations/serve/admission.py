"""Which requests are read, wait and are answered: complete ones take a place, then wait for their turn.

A request has no place before all of it is there, so clients that send slowly keep nobody waiting; what they sent is
bounded by itself. When the server stops, those that are not answered yet are sent away with 503.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, MutableMapping
from contextlib import asynccontextmanager, contextmanager
from typing import Any, NoReturn

import anyio

from robustrag_integrations.json_values import valid_text
from robustrag_integrations.serve.errors import RequestError
from robustrag_integrations.serve.limits import Limits

Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]


class ClientGoneError(Exception):
    """The client hung up."""


class Admission:
    """Admits requests; used in one event loop.

    Args:
        limits: what is admitted at most.

    Attributes:
        limits: the same.
        stopped: whether the server is about to stop.
    """

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.stopped = False
        self._turns = asyncio.Semaphore(limits.concurrent)
        self._free = limits.concurrent + limits.waiting
        self._unfinished: dict[anyio.CancelScope, bytearray] = {}

    def stop(self) -> None:
        """Send away all that are not answered yet."""
        if not self.stopped:
            self.stopped = True
            for scope in self._unfinished:
                scope.cancel()
            for _ in range(self.limits.waiting):
                self._turns.release()

    async def read(self, headers: Mapping[bytes, bytes], receive: Receive) -> dict[str, Any]:
        """A request's JSON object.

        Args:
            headers: by their names in lower case.
            receive: ASGI's.

        Raises:
            RequestError: it is too long, comes too slowly, or is not a JSON object.
            ClientGoneError: the client hung up before it was complete.
        """
        most = self.limits.body_bytes
        too_long = RequestError(413, f"the request is longer than {most} bytes", code="request_too_large")
        if headers.get(b"content-type", b"").split(b";")[0].strip().lower() != b"application/json":
            raise RequestError(415, "the request must have Content-Type: application/json")
        if headers.get(b"content-encoding", b"identity") != b"identity":
            raise RequestError(415, "the request must not be compressed")
        announced = headers.get(b"content-length", b"0")
        # The length is checked first: turning thousands of digits into a number takes time.
        if len(announced) > 18 or not announced.isdigit() or int(announced) > most:
            raise too_long
        body = bytearray()
        with anyio.move_on_after(self.limits.body_seconds) as scope:
            self._unfinished[scope] = body
            try:
                more = True
                while more:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise ClientGoneError
                    body += message.get("body", b"")
                    if len(body) > most:
                        raise too_long
                    more = message.get("more_body", False)
                    if sum(map(len, self._unfinished.values())) > max(most, self.limits.unfinished_bytes):
                        next(iter(self._unfinished)).cancel()
            finally:
                del self._unfinished[scope]
        if scope.cancelled_caught:
            self._refuse_if_stopped()
            wrong = f"the request was not complete after {self.limits.body_seconds} s, or when others needed the memory"
            raise RequestError(408, wrong, retry_after=1, closes=True)
        return json_object(bytes(body))

    @contextmanager
    def place(self) -> Iterator[None]:
        """A place among those that are answered or wait.

        Raises:
            RequestError: there is none left.
        """
        self._refuse_if_stopped()
        if self._free == 0:
            raise RequestError(
                429,
                "too many requests are under way; try again later",
                kind="rate_limit_error",
                code="rate_limit_exceeded",
                retry_after=1,
            )
        self._free -= 1
        try:
            yield
        finally:
            self._free += 1

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Waits until there is room to answer.

        Raises:
            RequestError: the server stops.
        """
        async with self._turns:
            self._refuse_if_stopped()
            yield

    def _refuse_if_stopped(self) -> None:
        if self.stopped:
            raise stopping_error()


def stopping_error() -> RequestError:
    """What is said to those who get no answer as the server stops."""
    return RequestError(503, "the server stops; try again", kind="server_error", retry_after=1, closes=True)


def json_object(body: bytes) -> dict[str, Any]:
    """A JSON object from its bytes, in valid Unicode.

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
    """An object without repeats: of two entries with one name, another program may have checked the other one."""
    made = dict(pairs)
    if len(made) < len(pairs):
        raise RequestError(400, "the JSON names an entry twice")
    return made
