"""What every request passes before anything of it is read: its host, its key, and a line in the log."""

from __future__ import annotations

import hmac
import logging
import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from robustrag_integrations.serve.bodies import Receive
from robustrag_integrations.serve.refusals import RefusedError, refusal_of
from robustrag_integrations.serve.sending import Send, Sender

App = Callable[[MutableMapping[str, Any], Receive, Send], Awaitable[None]]

_LOG = logging.getLogger(__name__)
_OPEN = frozenset({"/healthz"})  # without a key
_SHOWN = frozenset({"/healthz", "/v1/models", "/v1/chat/completions"})  # a path that nobody serves may hold anything
_METHODS = frozenset({"DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT"})


class Doors:
    """An ASGI middleware.

    Args:
        app: what is behind the doors.
        key: the API key; None asks for none.
        hosts: the names by which the server may be called, in lower case; None for any. Without a key, a page in the
            user's browser could otherwise call it by a name of the attacker's that leads here (DNS rebinding).
    """

    def __init__(self, app: App, *, key: str | None = None, hosts: frozenset[str] | None = None) -> None:
        self._app = app
        self._key = None if key is None else key.encode()
        self._hosts = hosts

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        """Let a request in, or say why not."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began, status = time.perf_counter(), 0

        async def noted(message: MutableMapping[str, Any]) -> None:
            nonlocal status
            status = message.get("status", status)
            await send(message)

        try:
            self._check(scope)
            await self._app(scope, receive, noted)
        except Exception as error:
            if not isinstance(error, RefusedError):
                _LOG.error("failed: %s", type(error).__name__)  # its text may quote passages
            refusal = refusal_of(error) if isinstance(error, RefusedError) else refusal_of(RuntimeError())
            if status == 0:
                await Sender(noted).json(refusal.status, refusal.body, refusal.headers)
        finally:
            method = scope["method"] if scope["method"] in _METHODS else "other"
            path = scope["path"] if scope["path"] in _SHOWN else "(other)"
            _LOG.info("%s %s: %s after %.3f s", method, path, status or "no reply", time.perf_counter() - began)

    def _check(self, scope: MutableMapping[str, Any]) -> None:
        headers = dict(scope["headers"])
        if self._hosts is not None and _name(headers.get(b"host", b"")) not in self._hosts:
            raise RefusedError(421, "this server has another name (--allowed-hosts)", code="wrong_host")
        if self._key is None or scope["path"] in _OPEN:
            return
        scheme, _, given = headers.get(b"authorization", b"").partition(b" ")
        # Both are compared whole, in a time that does not tell how much of the key was right.
        if not (hmac.compare_digest(given.strip(), self._key) and scheme.lower() == b"bearer"):
            raise RefusedError(401, "the API key is missing or wrong", code="invalid_api_key")


def _name(host: bytes) -> str:
    """The name of a Host header, without its port."""
    text = host.decode("latin-1").strip().lower()
    return text.partition("]")[0] + "]" if text.startswith("[") else text.partition(":")[0]
