"""What a server can do wrong, by name."""

from __future__ import annotations

import json
import socket
import struct
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal

from tests.helpers.openai_server import Reply

NEVER = threading.Event()
BIG = 50_000_000  # characters
_PIECE = 5_000_000
_PACE = 0.05  # seconds between the bytes of a server that trickles


@dataclass(frozen=True)
class Fault:
    """One thing that a server can do wrong.

    Attributes:
        whole: what it does when the answer is asked for in one piece.
        streamed: what it does when the answer is asked for in pieces.
        effect: the request `fails`, `hangs` until the client gives up, or somebody else `speaks`.
        said: what is then said, in one piece and in many.
    """

    whole: Reply
    streamed: Reply
    effect: Literal["fails", "hangs", "speaks"] = "fails"
    said: tuple[str, str] = ("", "")


def _completion(content: str) -> bytes:
    message = {"role": "assistant", "content": content}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    common = {"id": "1", "object": "chat.completion", "created": 0, "model": "m"}
    return json.dumps({**common, "choices": [choice]}).encode()


def _head(handler: Any, length: int) -> None:
    """As this server hangs up behind every such reply, it says so: no other fault comes along with this one."""
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n")
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
    _stream_head(handler)
    _trickle(handler, b": still thinking\n" * 10_000)


def _stream_head(handler: Any) -> None:
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n")
    handler.wfile.flush()


def _chunk(content: str, finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": {"content": content}, "finish_reason": finish}
    event = {"id": "1", "object": "chat.completion.chunk", "created": 0, "model": "m", "choices": [choice]}
    return json.dumps(event).encode()


def _reset_stream(handler: Any) -> None:
    """Two pieces of an answer, then a TCP reset."""
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
    for text in ("Eve", " Black"):
        data = b"data: " + _chunk(text) + b"\n\n"
        handler.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
        handler.wfile.flush()
    handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    handler.connection.close()


def _big(handler: Any) -> None:
    before, after = _completion("@").split(b"@")
    _head(handler, len(before) + BIG + len(after))
    handler.wfile.write(before)
    for _ in range(BIG // _PIECE):
        handler.wfile.write(b"a" * _PIECE)
    handler.wfile.write(after)


def _events(events: Iterable[bytes]) -> Reply:
    """A stream of these events that ends as it should."""

    def act(handler: Any) -> None:
        _stream_head(handler)
        for event in (*events, b"[DONE]"):
            handler.wfile.write(b"data: " + event + b"\n\n")

    return Reply(act=act)


def _moved(handler: Any, streamed: bool) -> None:
    """Send the client elsewhere, where somebody else answers; this server plays both."""
    if not handler.path.endswith("?elsewhere"):
        handler.wfile.write(b"HTTP/1.1 307 Temporary Redirect\r\nConnection: close\r\nContent-Length: 0\r\n")
        handler.wfile.write(f"Location: {handler.path}?elsewhere\r\n\r\n".encode())
    elif streamed:
        _stream_head(handler)
        for event in (_chunk("Eve", "stop"), b"[DONE]"):
            handler.wfile.write(b"data: " + event + b"\n\n")
    else:
        body = _completion("Eve")
        _head(handler, len(body))
        handler.wfile.write(body)


def _status(status: int, words: str, **headers: str) -> Fault:
    reply = Reply(words, status=status, headers=headers)
    return Fault(reply, reply)


def _body(change: Callable[[bytes], bytes], **more: Any) -> Fault:
    """A well-formed answer of `@` with its bytes changed."""
    return Fault(Reply(body=change(_completion("@"))), _events([_chunk("Eve "), change(_chunk("@", "stop"))]), **more)


def _with_choices(whole: bytes, count: int) -> bytes:
    """The answer with choices that hold nothing in place of its own."""
    return json.dumps({**json.loads(whole), "choices": [{}] * count}).encode()


SLOW_STREAM = Reply(act=_slow_stream)
_HUNG_UP = Reply(act=_hang_up)

LARGE, EMPTY, MANY, MOVED = "50 MB", "empty choices", "2,000 choices", "307"
FAULTS: dict[str, Fault] = {
    "400 content filter": _status(400, "The response was filtered"),
    "401": _status(401, "no such key"),
    "404": _status(404, "no such model"),
    "408": _status(408, "too slow"),
    "429": _status(429, "slow down"),
    "429 Retry-After": _status(429, "slow down", **{"Retry-After": "3600"}),
    "500": _status(500, "out of order"),
    "502": _status(502, "bad gateway"),
    "503": _status(503, "overloaded"),
    MOVED: Fault(
        Reply(act=lambda handler: _moved(handler, False)),
        Reply(act=lambda handler: _moved(handler, True)),
        "speaks",
        said=("Eve", "Eve"),
    ),
    "hung up": Fault(_HUNG_UP, _HUNG_UP),
    "reset in mid-body": Fault(Reply(act=_reset), Reply(act=_reset_stream)),
    "slow loris, head": Fault(Reply(act=_slow_head), Reply(act=_slow_head), "hangs"),
    "slow loris, body": Fault(Reply(act=_slow_body), SLOW_STREAM, "hangs"),
    "hang for ever": Fault(Reply("late", wait=NEVER), Reply("late", wait=NEVER), "hangs"),
    "truncated JSON": _body(lambda whole: whole[:-30]),
    "wrong schema": _body(lambda whole: whole.replace(b'"@"', b'{"text": ["Anna Lind"]}')),
    "a list": _body(lambda whole: b"[1, 2, 3]"),
    EMPTY: _body(lambda whole: _with_choices(whole, 0)),
    MANY: _body(lambda whole: _with_choices(whole, 2000)),
    LARGE: Fault(
        Reply(act=_big), _events([_chunk("a" * _PIECE)] * (BIG // _PIECE)), "speaks", said=("a" * BIG, "a" * BIG)
    ),
    "invalid UTF-8": _body(lambda whole: whole.replace(b"@", b"Anna \xff\xfe Lind")),
    "duplicate keys": _body(
        lambda whole: whole.replace(b'"content": "@"', b'"content": "Anna Lind", "content": "Black"'),
        effect="speaks",
        said=("Black", "Eve Black"),
    ),
}
