"""A request's bytes as JSON. The client is not trusted: size, time, depth and numbers are bounded."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any, NoReturn

from robustrag_integrations.serve.limits import Limits
from robustrag_integrations.serve.refusals import RefusedError

Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]


class ClientGoneError(Exception):
    """The client hung up."""


async def read_json(headers: Mapping[bytes, bytes], receive: Receive, limits: Limits) -> dict[str, Any]:
    """The request's JSON object.

    Args:
        headers: by their names in lower case.
        receive: ASGI's.
        limits: how long it may be and take.

    Raises:
        RefusedError: it is too long, comes too slowly, or is not a JSON object.
        ClientGoneError: the client hung up before it was complete.
    """
    if headers.get(b"content-type", b"").split(b";")[0].strip().lower() != b"application/json":
        raise RefusedError(415, "the request must have Content-Type: application/json")
    if headers.get(b"content-encoding", b"identity") != b"identity":
        raise RefusedError(415, "the request must not be compressed")
    try:
        body = await asyncio.wait_for(_bytes(headers, receive, limits.body_bytes), limits.body_seconds)
    except (TimeoutError, asyncio.TimeoutError):
        raise RefusedError(408, f"the request was not complete after {limits.body_seconds} s") from None
    return parsed(body)


async def _bytes(headers: Mapping[bytes, bytes], receive: Receive, most: int) -> bytes:
    too_long = RefusedError(413, f"the request is longer than {most} bytes", code="request_too_large")
    announced = headers.get(b"content-length", b"0")
    # The length is checked first: turning thousands of digits into a number takes time.
    if len(announced) > 18 or not announced.isdigit() or int(announced) > most:
        raise too_long
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientGoneError
        body += message.get("body", b"")
        if len(body) > most:
            raise too_long
        if not message.get("more_body", False):
            return bytes(body)


def parsed(body: bytes) -> dict[str, Any]:
    """A JSON object from its bytes.

    Raises:
        RefusedError: it is not one, nests too deep, names an entry twice, or holds NaN or Infinity.
    """
    try:
        found = json.loads(body.decode(), parse_constant=_no_number, object_pairs_hook=_once)
    except RecursionError:
        raise RefusedError(400, "the JSON nests too deep") from None
    except UnicodeDecodeError:
        raise RefusedError(400, "the request is not valid UTF-8") from None
    except json.JSONDecodeError as error:
        raise RefusedError(400, f"the request is not valid JSON: {error.msg} at character {error.pos}") from None
    except ValueError:  # more digits than Python reads
        raise RefusedError(400, "the JSON holds a number that is too long") from None
    if not isinstance(found, dict):
        raise RefusedError(400, f"the request must be a JSON object, got {type(found).__name__}")
    return found


def _no_number(name: str) -> NoReturn:
    raise RefusedError(400, f"{name} is not JSON")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object without repeats: of two entries with one name, another program may have checked the other one."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise RefusedError(400, "the JSON names an entry twice")
    return found
