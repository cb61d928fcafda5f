"""The application: its addresses, behind its doors."""

from __future__ import annotations

import time
from collections.abc import Iterable

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.routing import Route

from robustrag_integrations.display import printable
from robustrag_integrations.serve.chat import ChatCompletions
from robustrag_integrations.serve.doors import App, Doors
from robustrag_integrations.serve.origins import checked_origins
from robustrag_integrations.serve.refusals import RefusedError
from robustrag_integrations.serve.replies import model_of, models_of
from robustrag_integrations.serve.service import Service

_ADDRESSES = "POST /v1/chat/completions, GET /v1/models and GET /healthz"
LOOPBACK_HOSTS = frozenset({"localhost", "127.0.0.1", "[::1]"})


def create_app(
    service: Service,
    *,
    key: str | None = None,
    hosts: Iterable[str] | None = LOOPBACK_HOSTS,
    origins: Iterable[str] = (),
) -> App:
    """The ASGI application.

    Args:
        service: what answers.
        key: the API key that clients must send; None asks for none.
        hosts: the names by which clients may call it (the Host header, without the port); None for any.
        origins: web pages that may call it from a browser (CORS); none by default.

    Raises:
        ValueError: an origin is neither "*" nor of the form http://host:port.
    """
    # No pages about itself, as they load scripts from elsewhere; no redirects, as the client names where they lead.
    app = FastAPI(title="robustrag", docs_url=None, redoc_url=None, openapi_url=None, redirect_slashes=False)
    created = int(time.time())

    @app.get("/healthz")
    async def healthz() -> dict[str, str]:
        return {"status": "ok"}

    @app.get("/v1/models")
    async def models() -> JSONResponse:
        return JSONResponse(models_of(service, created))

    @app.get("/v1/models/{name}")
    async def model(name: str) -> JSONResponse:
        service.served(name)
        return JSONResponse(model_of(service, name, created))

    @app.exception_handler(RefusedError)
    async def refused(request: Request, error: RefusedError) -> JSONResponse:
        return JSONResponse(error.body, error.status, headers=error.headers)

    @app.exception_handler(HTTPException)
    async def missing(request: Request, error: HTTPException) -> JSONResponse:
        allowed = f"; use {error.headers['Allow']}" if error.headers and "Allow" in error.headers else ""
        wrong = f"{error.detail}{allowed}"
        if error.status_code == 404:
            wrong = f"nothing is served at {printable(request.url.path, 100)}; there are {_ADDRESSES}"
        return JSONResponse(RefusedError(error.status_code, wrong).body, error.status_code, headers=error.headers)

    app.router.routes.append(Route("/v1/chat/completions", ChatCompletions(service), methods=["POST"]))
    inside: App = Doors(app, key=key, hosts=None if hosts is None else frozenset(h.lower() for h in hosts))
    if pages := checked_origins(origins):
        # Outside of the doors: a browser asks for leave without a key.
        return CORSMiddleware(
            inside, allow_origins=pages, allow_methods=["GET", "POST"], allow_headers=["authorization", "content-type"]
        )
    return inside
