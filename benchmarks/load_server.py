"""A chat server on loopback for load: it reads the fact out of each prompt after a fixed wait, and keeps its own times.

`python -m benchmarks.load_server --wait 0.02` prints its port and serves until its input ends. `GET /times` gives what
every request took in here, in seconds.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import sys
import time
from typing import Any

_FACT = re.compile(r"The code of depot \d+ is (\w+)\.")
_KEPT = re.compile(r"Keywords: (.*)\n")
_LENGTH = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)


class LoadServer:
    """Answers after `wait` seconds."""

    def __init__(self, wait: float) -> None:
        self._wait = wait
        self._times: list[float] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer requests on one connection until the client hangs up."""
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                began = time.perf_counter()
                found = _LENGTH.search(head)
                body = await reader.readexactly(int(found.group(1))) if found else b""
                if head.startswith(b"GET /times"):
                    answer: Any = self._times
                else:
                    await asyncio.sleep(self._wait)
                    answer = _completion(json.loads(body))
                data = json.dumps(answer).encode()
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n")
                writer.write(f"Content-Length: {len(data)}\r\n\r\n".encode() + data)
                await writer.drain()
                if not head.startswith(b"GET"):
                    self._times.append(time.perf_counter() - began)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


def _completion(request: dict[str, Any]) -> dict[str, Any]:
    message = {"role": "assistant", "content": _answer(request["messages"][-1]["content"])}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    return {"id": "1", "object": "chat.completion", "created": 0, "model": "load", "choices": [choice]}


def _answer(prompt: str) -> str:
    found = _FACT.search(prompt)
    if found:
        return found.group(1)
    kept = _KEPT.search(prompt)
    return kept.group(1) if kept else "I don't know"


async def _main(wait: float) -> None:
    server = await asyncio.start_server(LoadServer(wait).serve, "127.0.0.1", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    async with server:
        await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--wait", type=float, default=0.02, help="seconds before each answer")
    asyncio.run(_main(parser.parse_args().wait))
