"""A chat server on loopback for load: it reads the fact out of each prompt after some time, and keeps its own times.

`python -m benchmarks.load_server --wait 0.02` prints its port and serves until its input ends. With `--spread` the time
is log-normal around `--wait`, and for `--slow` of the requests twenty times as long. `GET /times` gives what every
request took in here, in seconds, and `GET /counts` how many came in and how many clients hung up before their answer.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import re
import sys
import time
from typing import Any

SLOWNESS = 20  # times as long, for the slow ones
_FACT = re.compile(rb"The code of depot \d+ is (\w+)\.")
_KEPT = re.compile(rb"Keywords: (.*?)(?:\\n|\")")
_LENGTH = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)
_END = b"\r\n\r\n"


class Latency:
    """How long each request takes, drawn from a fixed seed.

    Args:
        wait: seconds, the median.
        spread: the standard deviation of its logarithm; 0 for a fixed time.
        slow: the share of requests that take twenty times as long.
    """

    def __init__(self, wait: float, spread: float = 0.0, slow: float = 0.0) -> None:
        self._wait, self._spread, self._slow = wait, spread, slow
        self._random = random.Random(0)

    def __call__(self) -> float:
        """Seconds for the next request."""
        drawn = self._wait * self._random.lognormvariate(0.0, self._spread)
        return drawn * (SLOWNESS if self._random.random() < self._slow else 1)


class LoadServer(asyncio.Protocol):
    """One connection: requests one after another, each answered when its time has come.

    Args:
        latency: how long a request takes.
        times: what requests took, for all connections.
        counts: how many requests came, and how many clients hung up before theirs was answered.
    """

    def __init__(self, latency: Latency, times: list[float], counts: dict[str, int]) -> None:
        self._latency, self._times, self._counts = latency, times, counts
        self._data = b""
        self._answer: asyncio.TimerHandle | None = None
        self._transport: Any = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A client connects."""
        self._transport = transport

    def connection_lost(self, error: Exception | None) -> None:
        """A client hangs up."""
        if self._answer is not None:
            self._answer.cancel()
            self._counts["hung up"] += 1

    def data_received(self, data: bytes) -> None:
        """A part of a request, or all of it."""
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
        elif head.startswith(b"GET /counts"):
            self._send(json.dumps(self._counts).encode())
        else:
            self._counts["requests"] += 1
            loop, began = asyncio.get_running_loop(), time.perf_counter()
            self._answer = loop.call_later(self._latency(), self._complete, body, began)

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


async def _main(latency: Latency) -> None:
    times: list[float] = []
    counts = {"requests": 0, "hung up": 0}
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: LoadServer(latency, times, counts), "127.0.0.1", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    async with server:
        await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--wait", type=float, default=0.02, help="seconds before each answer, the median")
    parser.add_argument("--spread", type=float, default=0.0, help="standard deviation of the logarithm of that")
    parser.add_argument("--slow", type=float, default=0.0, help="share of requests that take twenty times as long")
    args = parser.parse_args()
    asyncio.run(_main(Latency(args.wait, args.spread, args.slow)))
