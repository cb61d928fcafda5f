"""The socket, and uvicorn with bounded connections.

At most so many connections are open as the system's limit of files allows; some more are accepted for `/healthz`, the
oldest of which makes room for the next. A connection that sends no request is closed after a while.
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import socket
from functools import partial
from typing import Literal

import uvicorn
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from robustrag_integrations.serve.access import HEALTH
from robustrag_integrations.serve.endpoint import JSONReply
from robustrag_integrations.serve.errors import RequestError

MOST_CONNECTIONS = 1000  # idle ones included; fewer where the limit of open files is below twice that
KEEP_ALIVE = 5  # seconds
LAST_SECONDS = 30  # for answers under way when the server is told to stop

_SURPLUS = 16  # connections beyond, for /healthz
_SILENT_SECONDS = 10  # without a complete request line and headers
_HEADER_BYTES = 32_768
_QUEUE = 2048  # connections that are not accepted yet
_LOG = logging.getLogger(__name__)


def is_loopback(host: str) -> bool:
    """True if only this machine can connect to this address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def bound(host: str, port: int) -> socket.socket:
    """Return a socket that listens here; port 0 takes a free one.

    Raises:
        OSError: the address is taken, or is not this machine's.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return socket.create_server((host, port), family=family, backlog=_QUEUE)


def address_of(listening: socket.socket) -> str:
    """Return the address as clients write it."""
    host, port = listening.getsockname()[:2]
    return f"http://[{host}]:{port}/v1" if ":" in host else f"http://{host}:{port}/v1"


def open_files() -> int:
    """Return how many files this process may have open."""
    try:
        import resource
    except ImportError:  # the system has no such limit
        return 2048
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return soft if 0 < soft < 1 << 20 else 1 << 20


def most_connections() -> int:
    """Return how many connections may be open: half of the files, as answers need connections of their own."""
    return max(1, min(MOST_CONNECTIONS, open_files() // 2))


class BoundedProtocol(H11Protocol):
    """A connection of a limited number, closed when no request arrives in time."""

    is_surplus = False
    _closing: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Limit the number of connections."""
        super().connection_made(transport)
        self.since = self.loop.time()
        self._expect_request()
        if len(self.connections) <= most_connections():
            return
        self.is_surplus = True
        self.app = partial(_only_health, self.app)
        others = (connection for connection in self.connections if isinstance(connection, BoundedProtocol))
        surplus = [connection for connection in others if connection.is_surplus]
        if len(surplus) > _SURPLUS:
            oldest = min(surplus, key=lambda connection: connection.since)
            oldest.is_surplus = False  # it is closed a moment later
            oldest.transport.abort()
        if not self.app_state.get("warned"):
            self.app_state["warned"] = True
            _LOG.warning("%s connections are open: further ones get 503, or are closed", most_connections())

    def data_received(self, data: bytes) -> None:
        """Limit the time for a request's head."""
        super().data_received(data)
        self._expect_request()

    def connection_lost(self, exc: Exception | None) -> None:
        """Clean up."""
        super().connection_lost(exc)
        self._stop_closing()

    def shutdown(self) -> None:
        """Have the application refuse those whom it does not answer yet."""
        admission = getattr(getattr(self.config.loaded_app, "state", None), "admission", None)
        if admission is not None:
            admission.stop()
        super().shutdown()

    def _expect_request(self) -> None:
        if self.cycle is not None and not self.cycle.response_complete:
            self._stop_closing()
        elif self._closing is None:
            self._closing = self.loop.call_later(_SILENT_SECONDS, self.transport.abort)

    def _stop_closing(self) -> None:
        if self._closing is not None:
            self._closing.cancel()
            self._closing = None


async def _only_health(app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
    if scope["path"] == HEALTH:
        await app(scope, receive, send)
        return
    message = "too many connections; try again later"
    refusal = RequestError(503, message, kind="server_error", retry_after=1, closes=True)
    await JSONReply.refusing(refusal)(scope, receive, send)


class Server(uvicorn.Server):
    """uvicorn's server with a long accept queue, where one that accepts a few at a time would have a short one."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen."""
        await super().startup(sockets)
        for listening in sockets or ():
            listening.listen(_QUEUE)


def configured(
    app: ASGIApp,
    *,
    last_seconds: int = LAST_SECONDS,
    keep_alive: int = KEEP_ALIVE,
    lifespan: Literal["on", "off"] = "off",
) -> Server:
    """Return a server for the application.

    Args:
        app: the application.
        last_seconds: seconds for answers under way once it is told to stop.
        keep_alive: seconds after a reply in which a connection is kept for another request.
        lifespan: "on" if the application is told of the server's start and end.
    """
    settings = uvicorn.Config(
        app,
        http=BoundedProtocol,
        log_config=None,
        log_level="warning",
        access_log=False,  # it would show the query strings of clients
        server_header=False,
        lifespan=lifespan,
        proxy_headers=False,
        timeout_graceful_shutdown=last_seconds,
        timeout_keep_alive=keep_alive,
        h11_max_incomplete_event_size=_HEADER_BYTES,
        backlog=max(8, min(2048, open_files() // 16)),  # this many are accepted before the first of them is closed
        ws="none",
    )
    return Server(settings)


def run(app: ASGIApp, listening: socket.socket, keep_alive: int = KEEP_ALIVE) -> None:
    """Serve until the process is told to stop; answers under way are finished first."""
    configured(app, keep_alive=keep_alive).run(sockets=[listening])
