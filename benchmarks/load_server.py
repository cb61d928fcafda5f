"""A chat server on loopback for the load test: reads the fact out of each prompt after a delay, and times itself.

`python -m benchmarks.load_server 0.02` prints its port and serves until its input ends. `GET /times` gives what every
request took in here, in seconds.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
import time
from typing import Any

_FACT = re.compile(rb"The code of depot \d+ is (\w+)\.")
_KEPT = re.compile(rb"Keywords: (.*?)(?:\\n|\")")
_LENGTH = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)
_END = b"\r\n\r\n"


class LoadServer(asyncio.Protocol):
    """One connection: requests one after another, each answered when it is due.

    Args:
        wait: seconds that a request takes.
        times: what requests took, for all connections.
    """

    def __init__(self, wait: float, times: list[float]) -> None:
        self._wait, self._times = wait, times
        self._data = b""
        self._answer: asyncio.TimerHandle | None = None
        self._transport: Any = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Note a new client."""
        self._transport = transport

    def connection_lost(self, error: Exception | None) -> None:
        """Note that a client has disconnected."""
        if self._answer is not None:
            self._answer.cancel()

    def data_received(self, data: bytes) -> None:
        """Take a part of a request, or all of it."""
        self._data += data
        end = self._data.find(_END)
        if end < 0:
            return
        head = self._data[:end]
        found = _LENGTH.search(head)
        size = end + len(_END) + (int(found.group(1)) if found else 0)
        if len(self._data) < size:
            return
        body, self._data = self._data[end + len(_END) : size], self._data[size:]
        if head.startswith(b"GET /times"):
            self._send(json.dumps(self._times).encode())
        else:
            loop, began = asyncio.get_running_loop(), time.perf_counter()
            self._answer = loop.call_later(self._wait, self._complete, body, began)

    def _complete(self, body: bytes, began: float) -> None:
        self._answer = None
        self._send(_completion(body))
        self._times.append(time.perf_counter() - began)

    def _send(self, data: bytes) -> None:
        head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(data)
        self._transport.write(head + data)


def _completion(body: bytes) -> bytes:
    message = {"role": "assistant", "content": _answer(body)}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    completion = {"id": "1", "object": "chat.completion", "created": 0, "model": "load", "choices": [choice]}
    return json.dumps(completion).encode()


def _answer(request: bytes) -> str:
    found = _FACT.search(request) or _KEPT.search(request)
    return found.group(1).decode() if found else "I don't know"


async def _main(wait: float) -> None:
    times: list[float] = []
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: LoadServer(wait, times), "127.0.0.1", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    async with server:
        await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(_main(float(sys.argv[1])))
