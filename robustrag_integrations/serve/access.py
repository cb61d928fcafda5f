"""Checks headers and client of each request before its body is read, and logs one line per request."""

from __future__ import annotations

import hmac
import logging
import re
import time
from collections.abc import Iterable

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from robustrag_integrations.serve.endpoint import JSONReply
from robustrag_integrations.serve.errors import RequestError, request_error

HEALTH = "/healthz"
LOOPBACK_HOSTS = frozenset({"localhost", "127.0.0.1", "[::1]"})

_LOG = logging.getLogger(__name__)
_LOGGED = frozenset({HEALTH, "/v1/models", "/v1/chat/completions"})  # an unknown path may hold anything
_METHODS = frozenset({"DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT"})
_HOST = re.compile(r"(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::[0-9]{0,5})?")
# If sent twice, another program on the way may have checked the other one (RFC 9110, section 5.3).
_ONCE = (b"authorization", b"content-encoding", b"content-length", b"content-type", b"host", b"transfer-encoding")


class AccessMiddleware:
    """Checks headers, Host and API key, and logs one line per request, with numbers only.

    Args:
        app: the application behind it.
        key: the API key; None asks for none.
        hosts: the names by which the server may be called, in lower case; None for any. Without a key, a page in the
            user's browser could otherwise call it by a name of the attacker's that leads here (DNS rebinding).
    """

    def __init__(self, app: ASGIApp, key: str | None = None, hosts: Iterable[str] | None = None) -> None:
        self._app = app
        self._key = None if key is None else key.encode()
        self._hosts = None if hosts is None else frozenset(host.lower() for host in hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request in, or send the reason for refusing it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began, status = time.perf_counter(), 0

        async def noting(message: Message) -> None:
            nonlocal status
            status = message.get("status", status)
            await send(message)

        try:
            self._check(scope)
            await self._app(scope, receive, noting)
        except Exception as error:
            refusal = request_error(error)
            if status == 0:
                await JSONReply.refusing(refusal)(scope, receive, noting)
        finally:
            method = scope["method"] if scope["method"] in _METHODS else "other"
            path = scope["path"] if scope["path"] in _LOGGED else "(other)"
            _LOG.info("%s %s: %s after %.3f s", method, path, status or "no reply", time.perf_counter() - began)

    def _check(self, scope: Scope) -> None:
        names = [name for name, _ in scope["headers"]]
        if repeated := [name for name in _ONCE if names.count(name) > 1]:
            raise RequestError(400, f"the request has two headers {repeated[0].decode()}", closes=True)
        # "ought to be handled as an error" (RFC 9112, section 6.3): it may smuggle a second request.
        if b"content-length" in names and b"transfer-encoding" in names:
            raise RequestError(400, "the request has Content-Length beside Transfer-Encoding", closes=True)
        headers = dict(scope["headers"])
        if self._hosts is not None and _host_name(headers.get(b"host", b"")) not in self._hosts:
            raise RequestError(421, "this server has another name (--allowed-hosts)", code="wrong_host")
        if self._key is None or scope["path"] == HEALTH:
            return
        scheme, _, given = headers.get(b"authorization", b"").partition(b" ")
        # Both are compared whole, in a time that does not tell how much of the key was right.
        if not (hmac.compare_digest(given.strip(), self._key) and scheme.lower() == b"bearer"):
            raise RequestError(401, "the API key is missing or wrong", code="invalid_api_key")


def _host_name(host: bytes) -> str:
    """Return the name in a Host header, without its port; nothing if it is more than name and port."""
    found = _HOST.fullmatch(host.decode("latin-1").strip().lower())
    return found[1] if found else ""
