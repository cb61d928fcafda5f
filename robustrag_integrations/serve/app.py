"""The ASGI application: the checks of every request, and the routes, with defences by name and their documents."""

from __future__ import annotations

import asyncio
import hmac
import logging
import re
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from http import HTTPStatus
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from robustrag_integrations._util.display import printable
from robustrag_integrations.corpus.retrieval import Found, Library
from robustrag_integrations.defenses.base import Defense
from robustrag_integrations.defenses.registry import VANILLA
from robustrag_integrations.serve.chat import (
    ChatResponse,
    chat_request,
    prompt_report,
    report_of,
    usage_of,
)
from robustrag_integrations.serve.endpoint import (
    Admission,
    Endpoint,
    JSONReply,
    Limits,
    Reply,
    RequestError,
    request_error,
)

LOOPBACK_HOSTS = frozenset({"localhost", "127.0.0.1", "[::1]"})

_HEALTH = "/healthz"
_LOG = logging.getLogger(__name__)
_LOGGED = frozenset({_HEALTH, "/v1/models", "/v1/chat/completions"})  # an unknown path may hold anything
_HOST = re.compile(r"(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::[0-9]{0,5})?")
# If sent twice, another program on the way may have checked the other one (RFC 9110, section 5.3).
_ONCE = (b"authorization", b"content-encoding", b"content-length", b"content-type", b"host", b"transfer-encoding")


class AccessMiddleware:
    """Checks headers, Host and API key before a body is read, and logs one line per request, with numbers only.

    Without a key, a page in the user's browser could call the server by another name that leads here (DNS rebinding).
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
                await JSONReply(refusal.body, refusal.status, refusal.headers)(scope, receive, noting)
        finally:
            method = scope["method"] if scope["method"] in ("GET", "POST") else "other"
            path = scope["path"] if scope["path"] in _LOGGED else "(other)"
            _LOG.info("%s %s: %s after %.3f s", method, path, status or "no reply", time.perf_counter() - began)

    def _check(self, scope: Scope) -> None:
        names = [name for name, _ in scope["headers"]]
        if repeated := [name for name in _ONCE if names.count(name) > 1]:
            raise RequestError(400, f"the request has two headers {repeated[0].decode()}", connection="close")
        # "ought to be handled as an error" (RFC 9112, section 6.3): it may smuggle a second request.
        if b"content-length" in names and b"transfer-encoding" in names:
            raise RequestError(400, "the request has Content-Length beside Transfer-Encoding", connection="close")
        headers = dict(scope["headers"])
        host = _HOST.fullmatch(headers.get(b"host", b"").decode("latin-1").strip().lower())
        if self._hosts is not None and (host is None or host[1] not in self._hosts):
            raise RequestError(421, "this server has another name (--allowed-hosts)", code="wrong_host")
        if self._key is None or scope["path"] == _HEALTH:
            return
        scheme, _, given = headers.get(b"authorization", b"").partition(b" ")
        # Both are compared whole, in a time that does not tell how much of the key was right.
        if not (hmac.compare_digest(given.strip(), self._key) and scheme.lower() == b"bearer"):
            wrong = "the API key is missing or wrong"
            raise RequestError(401, wrong, "invalid_api_key", www_authenticate="Bearer")


@dataclass(frozen=True)
class Service:
    """Everything that answers need: documents, defences by the name that clients ask for, and bounds."""

    library: Library
    models: Mapping[str, Defense]
    limits: Limits = field(default_factory=Limits)
    documents_allowed: bool = False  # with a request


def create_app(service: Service, *, key: str | None = None, hosts: Iterable[str] | None = LOOPBACK_HOSTS) -> Starlette:
    """Create the ASGI application, for clients with this key and by these names (None: any)."""
    created, admission, limits = int(time.time()), Admission(service.limits), service.limits

    def defense_of(name: str) -> Defense:
        if name not in service.models:
            message = f"there is no model {printable(name, 100)!r} here; ask for {', '.join(service.models)}"
            raise RequestError(404, message, code="model_not_found", param="model")
        return service.models[name]

    def described(name: str) -> dict[str, Any]:
        about = {"method": defense_of(name).method.name}
        return {"id": name, "object": "model", "created": created, "owned_by": "robustrag", "robustrag": about}

    async def healthz(request: Request) -> JSONReply:
        return JSONReply({"status": "ok"})

    async def models(request: Request) -> JSONReply:
        return JSONReply({"object": "list", "data": list(map(described, service.models))})

    async def model(request: Request) -> JSONReply:
        return JSONReply(described(request.path_params["name"]))

    async def chat(body: dict[str, Any], reply: Reply) -> None:
        request = chat_request(body, limits, documents_allowed=service.documents_allowed)
        defense, response = defense_of(request.model), ChatResponse(request.model)
        async with admission.turn():
            search = partial(Found, given=request.documents, retrieve=request.retrieve)
            found = await asyncio.to_thread(search, service.library, request.question)
            asked = await asyncio.to_thread(found.of, defense)
            for_prompt = request.is_read_by_model
            if for_prompt or not request.stream:
                answer = await defense.aanswer(request.question, **asked)
                answer = answer.for_prompt() if for_prompt else answer
            else:
                async with defense.astream(request.question, **asked) as pieces:
                    async for text in pieces:
                        await reply.event(response.chunk({"role": "assistant", "content": text}))
                answer = pieces.answer
        undefended = defense.method.name == VANILLA.name
        notes = (*request.notes, *(["no defence: any passage may decide this answer"] if undefended else []))
        report = prompt_report(answer) if for_prompt else report_of(answer, found.passages, notes)
        if not request.stream:
            await reply.respond(response.whole(answer.text, answer.spending.total, report))
            return
        if for_prompt:
            await reply.event(response.chunk({"role": "assistant", "content": answer.text}))
        await reply.event(response.chunk({}, "stop", usage=usage_of(answer.spending.total), robustrag=report))
        await reply.end()

    routes = [
        Route(_HEALTH, healthz),
        Route("/v1/models", models),
        Route("/v1/models/{name}", model),
        Route("/v1/chat/completions", Endpoint(chat, limits), methods=["POST"]),
    ]
    return guarded(routes, key=key, hosts=hosts)


def guarded(routes: Sequence[Route], *, key: str | None = None, hosts: Iterable[str] | None) -> Starlette:
    """Return an application of these routes, behind the checks of every request."""

    async def not_found(request: Request, error: Exception) -> JSONReply:
        assert isinstance(error, HTTPException)  # noqa: S101 - by Starlette's router
        path = printable(request.url.path, 100)
        message = f"nothing is served at {path}; there are {', '.join(r.path for r in routes)}"
        if error.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
            message = f"{path} takes {(error.headers or {}).get('Allow', 'another method')}, not {request.method}"
        return JSONReply(RequestError(error.status_code, message).body, error.status_code, error.headers)

    checks = [Middleware(AccessMiddleware, key=key, hosts=hosts)]
    app = Starlette(routes=routes, middleware=checks, exception_handlers={HTTPException: not_found})
    app.router.redirect_slashes = False  # the client names where a redirect leads
    return app
