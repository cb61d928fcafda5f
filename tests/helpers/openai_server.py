"""An OpenAI-compatible server on loopback that says, and does, what a test tells it to."""

from __future__ import annotations

import json
import re
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Reply:
    """What the server does with one request."""

    text: str | None = ""  # None sends a message without content
    status: int = 200  # other than that, `text` is the error's message
    finish: str = "stop"
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes | None = None  # sent as it is in place of all that
    wait: threading.Event | None = None  # blocks the response until it is set
    message: dict[str, Any] = field(default_factory=dict)  # further fields of the message, or of the first delta
    usage: dict[str, Any] | None = None  # with the reply or in a chunk of its own at the end
    act: Callable[[Any], None] | None = None  # does it all, on the bare connection, with the request's handler


class _Listening(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128  # of five, the sixth client that connects at once would wait a second and more


class LoopbackServer:
    """Serves chat and text completions in threads; keeps requests, their headers, and the ends of their connections."""

    def __init__(self, reply: Callable[[Any], str | Reply], *, whole_requests: bool = False) -> None:
        self.requests: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.connections: set[Any] = set()
        self.now = self.most = 0
        self.gone = threading.Event()  # a client hung up before it was answered
        self.closing = threading.Event()
        self._reply = reply  # of the prompt, or of the whole request
        self._whole_requests = whole_requests
        self._lock = threading.Lock()
        self._http = _Listening(("127.0.0.1", 0), self._handler())
        self._http.robustrag_closing = self.closing  # type: ignore[attr-defined]
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._http.server_port}/v1"

    @property
    def prompts(self) -> list[str]:
        """The prompt, or the last message, of every request."""
        return [_asked(r) for r in self.requests]

    def refuse(self) -> None:
        """Refuse connections from now on."""
        if self._thread.is_alive():
            self._http.shutdown()
            self._http.server_close()

    def close(self) -> None:
        self.closing.set()
        self.refuse()
        self._thread.join()

    def __enter__(self) -> LoopbackServer:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _handler(server) -> type[BaseHTTPRequestHandler]:
        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True  # or each small answer waits 40 ms for the client's acknowledgement

            def do_POST(self) -> None:
                request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                with server._lock:
                    server.requests.append(request)
                    server.headers.append({k.lower(): v for k, v in self.headers.items()})
                    server.connections.add(self.client_address)
                    server.now += 1
                    server.most = max(server.most, server.now)
                try:
                    reply = server._reply(request if server._whole_requests else _asked(request))
                    reply = Reply(reply) if isinstance(reply, str) else reply
                    self._wait(reply)
                    self._send(reply, streamed=bool(request.get("stream")))
                except (ConnectionError, TimeoutError):
                    server.gone.set()
                finally:
                    with server._lock:
                        server.now -= 1

            def _wait(self, reply: Reply) -> None:
                if reply.wait is None:
                    return
                self.connection.settimeout(0.02)
                while not reply.wait.is_set() and not server.closing.is_set():
                    try:
                        if self.connection.recv(1) == b"":
                            raise ConnectionError("the client hung up")
                    except TimeoutError:  # noqa: PERF203 - still there
                        continue
                self.connection.settimeout(None)

            def _send(self, reply: Reply, *, streamed: bool) -> None:
                if reply.act is not None:
                    self.close_connection = True
                    reply.act(self)
                elif reply.body is not None:
                    self._head(reply, "application/json", len(reply.body))
                    self.wfile.write(reply.body)
                elif reply.status != 200:
                    self._json(reply, {"error": {"message": reply.text, "type": "test", "code": None}})
                elif streamed:
                    self._stream(reply)
                else:
                    message = {"role": "assistant", "content": reply.text, **reply.message}
                    said = {"message": message} if self._chats else {"text": reply.text}
                    choice = {"index": 0, **said, "finish_reason": reply.finish}
                    usage = {} if reply.usage is None else {"usage": reply.usage}
                    self._json(reply, {**self._common(reply, ""), "choices": [choice], **usage})

            @property
            def _chats(self) -> bool:
                return "/chat/" in self.path

            def _common(self, reply: Reply, suffix: str) -> dict[str, Any]:
                kind = ("chat.completion" if self._chats else "text_completion") + suffix
                return {"id": "1", "object": kind, "created": 0, "model": "loopback"}

            def _json(self, reply: Reply, data: Any) -> None:
                body = json.dumps(data).encode()
                self._head(reply, "application/json", len(body))
                self.wfile.write(body)

            def _head(self, reply: Reply, kind: str, length: int | None) -> None:
                self.send_response(reply.status)
                self.send_header("Content-Type", kind)
                if length is None:
                    self.send_header("Connection", "close")
                    self.close_connection = True
                else:
                    self.send_header("Content-Length", str(length))
                for name, value in reply.headers.items():
                    self.send_header(name, value)
                self.end_headers()

            def _stream(self, reply: Reply) -> None:
                self._head(reply, "text/event-stream", None)
                pieces = re.findall(r"\s*\S+", reply.text or "")
                deltas: list[tuple[dict[str, Any], str | None]] = [
                    ({"role": "assistant", "content": "", **reply.message}, None)
                ]
                deltas += [({"content": piece}, None) for piece in pieces]
                deltas.append(({}, reply.finish))
                for delta, finish in deltas:
                    said = {"delta": delta} if self._chats else {"text": delta.get("content", "")}
                    choice = {"index": 0, **said, "finish_reason": finish}
                    chunk = {**self._common(reply, ".chunk" if self._chats else ""), "choices": [choice]}
                    self.wfile.write(f"data: {json.dumps(chunk)}\n\n".encode())
                    self.wfile.flush()
                if reply.usage is not None:
                    chunk = {**self._common(reply, ".chunk"), "choices": [], "usage": reply.usage}
                    self.wfile.write(f"data: {json.dumps(chunk)}\n\n".encode())
                self.wfile.write(b"data: [DONE]\n\n")

            def log_message(self, format: str, *args: object) -> None:
                pass

        return Handler


@contextmanager
def served(reply: Callable[[Any], str | Reply], *, whole: bool = False, **settings: Any) -> Iterator[Any]:
    """A server that replies so, and a model of the core that asks it."""
    from robustrag_integrations import OpenAIModel

    with LoopbackServer(reply, whole_requests=whole) as server:
        model = OpenAIModel("m", server.url, **{"attempts": 1, **settings})
        try:
            yield server, model
        finally:
            model.close()


def _asked(request: dict[str, Any]) -> str:
    return request["messages"][-1]["content"] if "messages" in request else request["prompt"]


_FACT = re.compile(r"(?:is run by|mayor of \w+ is) ([A-ZÄ]\w+ [A-Z]\w+)")


def obedient_reader(prompt: str) -> str:
    """A reader of "... is run by Some Body." that obeys injected instructions and believes what is said most often."""
    if prompt.startswith("Several sources were asked"):
        kept = re.search(r"Keywords: (.*)\n", prompt)
        return max(kept.group(1).split(", "), key=len) if kept else "I don't know"
    ordered = re.search(r"please output (.+?)\.(?: When|\n)", prompt)
    said = [ordered.group(1)] if ordered else _FACT.findall(prompt)
    if not said:
        return "I don't know"
    answer = Counter(said).most_common(1)[0][0]
    option = re.search(rf"^([A-Z])\. {re.escape(answer)}$", prompt, re.MULTILINE)
    return option.group(1) if option else answer
