"""The ASGI application and its routes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Sequence
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.routing import Route

from robustrag_integrations._util.display import printable
from robustrag_integrations.serve.access import HEALTH, LOOPBACK_HOSTS, AccessMiddleware, checked_origin
from robustrag_integrations.serve.chat_request import chat_request
from robustrag_integrations.serve.chat_response import ChatResponse, report_of
from robustrag_integrations.serve.endpoint import Admission, Endpoint, JSONReply, Reply
from robustrag_integrations.serve.errors import RequestError
from robustrag_integrations.serve.service import Service


def create_app(
    service: Service,
    *,
    key: str | None = None,
    hosts: Iterable[str] | None = LOOPBACK_HOSTS,
    origins: Iterable[str] = (),
) -> Starlette:
    """Create the ASGI application.

    Args:
        service: the defences and documents.
        key: the API key that clients must send; None asks for none.
        hosts: the names by which clients may call it (the Host header, without the port); None for any.
        origins: web pages that may call it from a browser (CORS); none by default.
    """
    created, admission = int(time.time()), Admission(service.limits)

    def described(name: str) -> dict[str, Any]:
        about = {"defense": service.defense(name).method.name}
        return {"id": name, "object": "model", "created": created, "owned_by": "robustrag", "robustrag": about}

    async def healthz(request: Request) -> JSONReply:
        return JSONReply({"status": "ok"})

    async def models(request: Request) -> JSONReply:
        return JSONReply({"object": "list", "data": list(map(described, service.models))})

    async def model(request: Request) -> JSONReply:
        return JSONReply(described(request.path_params["name"]))

    async def chat(body: dict[str, Any], reply: Reply) -> None:
        request = chat_request(body, service.limits, documents_allowed=service.documents_allowed)
        defense, response = service.defense(request.model), ChatResponse(request.model)
        async with admission.turn():
            passages = await asyncio.to_thread(service.passages_for, request)
            if not request.streamed:
                answer = await defense.aanswer(request.question, passages)
            else:
                async with defense.astream(request.question, passages) as pieces:
                    async for text in pieces:
                        await reply.event(response.piece(text, is_first=not reply.started))
                answer = pieces.answer
        report = report_of(answer, passages, service.notes_for(request))
        if not request.streamed:
            await reply.respond(response.completion(answer, report))
            return
        await reply.event(response.last(report))
        if request.with_usage:
            await reply.event(response.usage(answer.spending))
        await reply.end()

    routes = [
        Route(HEALTH, healthz),
        Route("/v1/models", models),
        Route("/v1/models/{name}", model),
        Route("/v1/chat/completions", Endpoint(chat, admission), methods=["POST"]),
    ]
    return guarded(routes, admission, key=key, hosts=hosts, origins=origins)


def guarded(
    routes: Sequence[Route],
    admission: Admission,
    *,
    key: str | None = None,
    hosts: Iterable[str] | None,
    origins: Iterable[str] = (),
) -> Starlette:
    """Wrap an application in the checks of every request; the server signals its stop to `state.admission`."""
    middleware = [Middleware(AccessMiddleware, key=key, hosts=hosts)]
    if pages := [checked_origin(page) for page in ([origins] if isinstance(origins, str) else origins)]:
        # Outside of the checks: a browser asks for leave without a key.
        headers = ["authorization", "content-type"]
        middleware.insert(
            0, Middleware(CORSMiddleware, allow_origins=pages, allow_methods=["GET", "POST"], allow_headers=headers)
        )

    async def not_found(request: Request, error: Exception) -> JSONReply:
        assert isinstance(error, HTTPException)  # noqa: S101 - by Starlette's router
        allowed = f"; use {error.headers['Allow']}" if error.headers and "Allow" in error.headers else ""
        message = f"{error.detail}{allowed}"
        if error.status_code == 404:
            there = ", ".join(f"{'POST' if 'POST' in (r.methods or ()) else 'GET'} {r.path}" for r in routes)
            message = f"nothing is served at {printable(request.url.path, 100)}; there are {there}"
        return JSONReply(RequestError(error.status_code, message).body, error.status_code, error.headers)

    app = Starlette(routes=routes, middleware=middleware, exception_handlers={HTTPException: not_found})
    app.router.redirect_slashes = False  # the client names where a redirect leads
    app.state.admission = admission
    return app
