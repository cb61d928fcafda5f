"""The socket and uvicorn. A connection that sends no request is closed after a while."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from typing import Literal

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

MOST_CONNECTIONS = 1000  # idle ones included
_SILENT_SECONDS = 10  # without a complete request line and headers
_HEADER_BYTES = 32_768


def is_loopback(host: str) -> bool:
    """True if only this machine can connect to this address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def bound(host: str, port: int) -> socket.socket:
    """Return a socket that listens here; port 0 takes a free one."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return socket.create_server((host, port), family=family, backlog=2048)


def address_of(listening: socket.socket) -> str:
    """Return the address as clients write it, without a path."""
    host, port = listening.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


class ImpatientProtocol(H11Protocol):
    """A connection that is closed when no request arrives in time, which uvicorn only does after a reply."""

    _closing: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Limit the time for the first request's head."""
        super().connection_made(transport)
        self._expect_request()

    def data_received(self, data: bytes) -> None:
        """Limit the time for the next request's head."""
        super().data_received(data)
        self._expect_request()

    def connection_lost(self, exc: Exception | None) -> None:
        """Clean up."""
        super().connection_lost(exc)
        self._stop_closing()

    def _expect_request(self) -> None:
        if self.cycle is not None and not self.cycle.response_complete:
            self._stop_closing()
        elif self._closing is None:
            self._closing = self.loop.call_later(_SILENT_SECONDS, self.transport.abort)

    def _stop_closing(self) -> None:
        if self._closing is not None:
            self._closing.cancel()
            self._closing = None


def configured(
    app: ASGIApp, *, last_seconds: int = 30, keep_alive: int = 5, lifespan: Literal["on", "off"] = "off"
) -> uvicorn.Server:
    """Return a server; when told to stop, answers under way have `last_seconds`, idle connections `keep_alive`."""
    settings = uvicorn.Config(
        app,
        http=ImpatientProtocol,
        log_config=None,
        log_level="warning",
        access_log=False,  # it would show the query strings of clients
        server_header=False,
        lifespan=lifespan,
        proxy_headers=False,
        timeout_graceful_shutdown=last_seconds,
        timeout_keep_alive=keep_alive,
        h11_max_incomplete_event_size=_HEADER_BYTES,
        limit_concurrency=MOST_CONNECTIONS,
        ws="none",
    )
    return uvicorn.Server(settings)
