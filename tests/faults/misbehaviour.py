"""What a server can do wrong, by name."""

from __future__ import annotations

import json
import socket
import struct
import threading
from collections.abc import Callable
from typing import Any

from tests.openai_server import Reply

NEVER = threading.Event()
BIG = 50_000_000  # characters
_PACE = 0.05  # seconds between the bytes of a server that trickles


def _completion(content: str) -> bytes:
    message = {"role": "assistant", "content": content}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    common = {"id": "1", "object": "chat.completion", "created": 0, "model": "m"}
    return json.dumps({**common, "choices": [choice]}).encode()


def _head(handler: Any, length: int) -> None:
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n")
    handler.wfile.write(f"Content-Length: {length}\r\n\r\n".encode())
    handler.wfile.flush()


def _hang_up(handler: Any) -> None:
    """Close the connection before anything is said."""
    handler.connection.shutdown(socket.SHUT_RDWR)


def _reset(handler: Any) -> None:
    """Send half a body, then a TCP reset."""
    body = _completion("Anna Lind")
    _head(handler, len(body))
    handler.wfile.write(body[: len(body) // 2])
    handler.wfile.flush()
    handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    handler.connection.close()


def _trickle(handler: Any, data: bytes) -> None:
    closing = handler.server.robustrag_closing
    for byte in data:
        handler.connection.sendall(bytes([byte]))
        if closing.wait(_PACE):
            return


def _slow_head(handler: Any) -> None:
    _trickle(handler, b"HTTP/1.1 200 OK\r\nX-Filler: " + b"a" * 100_000)


def _slow_body(handler: Any) -> None:
    _head(handler, 100_000)
    _trickle(handler, b" " * 100_000)


def _slow_stream(handler: Any) -> None:
    """A stream of events in which something is always about to come."""
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n")
    handler.wfile.flush()
    _trickle(handler, b": still thinking\n" * 10_000)


def _reset_stream(handler: Any) -> None:
    """Two pieces of an answer, then a TCP reset."""
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
    for text in ("Eve", " Black"):
        choice = {"index": 0, "delta": {"content": text}, "finish_reason": None}
        event = {"id": "1", "object": "chat.completion.chunk", "created": 0, "model": "m", "choices": [choice]}
        data = f"data: {json.dumps(event)}\n\n".encode()
        handler.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
        handler.wfile.flush()
    handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    handler.connection.close()


def _big(handler: Any) -> None:
    before, after = _completion("@").split(b"@")
    _head(handler, len(before) + BIG + len(after))
    handler.wfile.write(before)
    for _ in range(BIG // 500_000):
        handler.wfile.write(b"a" * 500_000)
    handler.wfile.write(after)


_EMPTY = b'{"id": "1", "object": "chat.completion", "created": 0, "model": "m", "choices": []}'
_TWICE = _completion("Anna Lind").replace(b'"content": "Anna Lind"', b'"content": "Anna Lind", "content": "Eve Black"')

# What fails the request it answers, at once.
FAILING: dict[str, Callable[[], Reply]] = {
    "400 content filter": lambda: Reply("The response was filtered", status=400),
    "401": lambda: Reply("no such key", status=401),
    "404": lambda: Reply("no such model", status=404),
    "408": lambda: Reply("too slow", status=408),
    "429": lambda: Reply("slow down", status=429),
    "429 Retry-After": lambda: Reply("slow down", status=429, headers={"Retry-After": "3600"}),
    "500": lambda: Reply("out of order", status=500),
    "502": lambda: Reply("bad gateway", status=502),
    "503": lambda: Reply("overloaded", status=503),
    "hung up": lambda: Reply(act=_hang_up),
    "reset in mid-body": lambda: Reply(act=_reset),
    "truncated JSON": lambda: Reply(body=_completion("Anna Lind")[:-30]),
    "wrong schema": lambda: Reply(body=_completion("@").replace(b'"@"', b'{"text": ["Anna Lind"]}')),
    "a list": lambda: Reply(body=b"[1, 2, 3]"),
    "empty choices": lambda: Reply(body=_EMPTY),
    "invalid UTF-8": lambda: Reply(body=_completion("@").replace(b"@", b"Anna \xff\xfe Lind")),
}

# What fails the request it answers when the client's patience is over.
ENDLESS: dict[str, Callable[[], Reply]] = {
    "hang for ever": lambda: Reply("late", wait=NEVER),
    "slow loris, head": lambda: Reply(act=_slow_head),
    "slow loris, body": lambda: Reply(act=_slow_body),
}

BIG_REPLY = Reply(act=_big)
DUPLICATE_KEYS = Reply(body=_TWICE)
SLOW_STREAM = Reply(act=_slow_stream)
RESET_STREAM = Reply(act=_reset_stream)
