"""The ASGI application and its routes: defences by name, and the documents that they answer from."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.routing import Route

from robustrag_integrations._util.display import printable
from robustrag_integrations.corpus.retrieval import Library
from robustrag_integrations.defenses.base import Defense
from robustrag_integrations.defenses.registry import VANILLA
from robustrag_integrations.grouping.passages import Passage
from robustrag_integrations.serve.access import HEALTH, LOOPBACK_HOSTS, AccessMiddleware
from robustrag_integrations.serve.chat import ChatRequest, ChatResponse, chat_request, report_of
from robustrag_integrations.serve.endpoint import Admission, Endpoint, JSONReply, Limits, Reply
from robustrag_integrations.serve.errors import RequestError


@dataclass(frozen=True)
class Service:
    """Everything that answers need.

    Attributes:
        library: the server's documents.
        models: the defences, by the name that clients ask for.
        limits: bounds.
        documents_allowed: True if requests may bring documents.
    """

    library: Library
    models: Mapping[str, Defense]
    limits: Limits = field(default_factory=Limits)
    documents_allowed: bool = False

    def defense(self, name: str) -> Defense:
        """Return the defence behind a model's name.

        Raises:
            RequestError: there is no such model.
        """
        if name not in self.models:
            names = ", ".join(self.models)
            message = f"there is no model {printable(name, 100)!r} here; ask for {names}"
            raise RequestError(404, message, code="model_not_found", param="model")
        return self.models[name]

    def passages_for(self, request: ChatRequest) -> list[Passage]:
        """Return the passages that answer a request, best first; its own documents are the first of them."""
        return [*request.documents, *(self.library.search(request.question) if request.retrieve else [])]


def create_app(
    service: Service,
    *,
    key: str | None = None,
    hosts: Iterable[str] | None = LOOPBACK_HOSTS,
) -> Starlette:
    """Create the ASGI application.

    Args:
        service: the defences and documents.
        key: the API key that clients must send; None asks for none.
        hosts: the names by which clients may call it (the Host header, without the port); None for any.
    """
    created, admission, limits = int(time.time()), Admission(service.limits), service.limits

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
        request = chat_request(body, limits, documents_allowed=service.documents_allowed)
        defense, response = service.defense(request.model), ChatResponse(request.model)
        async with admission.turn():
            passages = await asyncio.to_thread(service.passages_for, request)
            if not request.stream:
                answer = await defense.aanswer(request.question, passages)
            else:
                async with defense.astream(request.question, passages) as pieces:
                    async for text in pieces:
                        await reply.event(response.piece(text, is_first=not reply.started))
                answer = pieces.answer
        undefended = defense.method.name == VANILLA.name
        notes = (*request.notes, *(["no defence: any passage may decide this answer"] if undefended else []))
        report = report_of(answer, passages, notes)
        if not request.stream:
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
        Route("/v1/chat/completions", Endpoint(chat, limits), methods=["POST"]),
    ]
    return guarded(routes, key=key, hosts=hosts)


def guarded(routes: Sequence[Route], *, key: str | None = None, hosts: Iterable[str] | None) -> Starlette:
    """Return an application of these routes, behind the checks of every request."""

    async def not_found(request: Request, error: Exception) -> JSONReply:
        assert isinstance(error, HTTPException)  # noqa: S101 - by Starlette's router
        allowed = f"; use {error.headers['Allow']}" if error.headers and "Allow" in error.headers else ""
        message = f"{error.detail}{allowed}"
        if error.status_code == 404:
            there = ", ".join(f"{'POST' if 'POST' in (r.methods or ()) else 'GET'} {r.path}" for r in routes)
            message = f"nothing is served at {printable(request.url.path, 100)}; there are {there}"
        return JSONReply(RequestError(error.status_code, message).body, error.status_code, error.headers)

    checks = [Middleware(AccessMiddleware, key=key, hosts=hosts)]
    app = Starlette(routes=routes, middleware=checks, exception_handlers={HTTPException: not_found})
    app.router.redirect_slashes = False  # the client names where a redirect leads
    return app
