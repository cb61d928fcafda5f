"""Running the application: the socket, and uvicorn without its log of requests."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import MutableMapping
from typing import TYPE_CHECKING, Any

from robustrag_integrations.serve.bodies import Receive
from robustrag_integrations.serve.doors import App
from robustrag_integrations.serve.refusals import RefusedError
from robustrag_integrations.serve.sending import Send, Sender

if TYPE_CHECKING:
    from uvicorn import Server

MOST_CONNECTIONS = 1000  # idle ones included
_LAST_SECONDS = 30  # that answers under way have when the server is told to stop
_HEADER_BYTES = 32_768


def is_loopback(host: str) -> bool:
    """Whether only this machine can connect to this address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def bound(host: str, port: int) -> socket.socket:
    """A socket that listens here; port 0 takes a free one.

    Raises:
        OSError: the address is taken, or is not this machine's.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return socket.create_server((host, port), family=family, backlog=2048)


def address_of(listening: socket.socket) -> str:
    """The address as clients write it."""
    host, port = listening.getsockname()[:2]
    return f"http://[{host}]:{port}/v1" if ":" in host else f"http://{host}:{port}/v1"


def configured(app: App, *, last_seconds: int = _LAST_SECONDS) -> Server:
    """A server for the application.

    Args:
        app: what is served.
        last_seconds: how long answers under way may take once it is told to stop.
    """
    import uvicorn

    async def bounded(scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        """The application, while there are not too many connections."""
        if len(server.server_state.connections) <= MOST_CONNECTIONS:
            await app(scope, receive, send)
            return
        refusal = RefusedError(503, "too many connections; try again later", kind="server_error", retry_after=1)
        await Sender(send).json(refusal.status, refusal.body, {**refusal.headers, "connection": "close"})

    settings = uvicorn.Config(
        bounded,
        http="h11",  # the other one that uvicorn takes, where it is installed, reads headers without an end
        log_config=None,
        log_level="warning",
        access_log=False,  # it would show what clients put into the address
        server_header=False,
        lifespan="off",
        proxy_headers=False,
        timeout_graceful_shutdown=last_seconds,
        h11_max_incomplete_event_size=_HEADER_BYTES,
        ws="none",
    )
    server = uvicorn.Server(settings)
    return server


def run(app: App, listening: socket.socket) -> None:
    """Serve until the process is told to stop; answers under way are finished first."""
    configured(app).run(sockets=[listening])
