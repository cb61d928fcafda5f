"""The application: the page and what its buttons ask for."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, MutableMapping
from importlib import resources
from typing import Any

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, Response
from starlette.routing import Route

from robustrag_integrations.playground.buttons import Buttons
from robustrag_integrations.playground.controls import controls_of
from robustrag_integrations.playground.models import Models
from robustrag_integrations.playground.parts import evidence_styles
from robustrag_integrations.playground.state import State, StateError
from robustrag_integrations.serve.bodies import Receive
from robustrag_integrations.serve.doors import App, Doors
from robustrag_integrations.serve.exchange import exchange
from robustrag_integrations.serve.gate import Gate
from robustrag_integrations.serve.limits import Limits
from robustrag_integrations.serve.refusals import RefusedError
from robustrag_integrations.serve.sending import Send, Sender

LIMITS = Limits(body_bytes=3_000_000, concurrent=1, waiting=16, seconds=600)

_KINDS = {"page.html": "text/html", "style.css": "text/css", "script.js": "text/javascript"}
# Nothing is loaded from elsewhere, nothing in the page can become a script, and no other page can frame it.
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
)
_HEADERS = {
    "content-security-policy": _POLICY,
    "cache-control": "no-store",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}

Events = Callable[[Mapping[str, Any]], AsyncIterator[dict[str, Any]]]


def create_app(models: Models, start: State, *, hosts: frozenset[str] | None, limits: Limits = LIMITS) -> App:
    """The ASGI application.

    Args:
        models: what a page may ask.
        start: what it begins with.
        hosts: the names by which browsers may call it (the Host header, without the port); None for any.
        limits: bounds of its requests.
    """
    app = FastAPI(title="robustrag playground", openapi_url=None, redirect_slashes=False)
    files = {name: _file(name) for name in _KINDS}
    controls, styles = controls_of(models, start), evidence_styles()

    @app.get("/")
    async def page() -> Response:
        return _sent("page.html", files["page.html"])

    @app.get("/script.js")
    async def script() -> Response:
        return _sent("script.js", files["script.js"])

    @app.get("/style.css")
    async def style() -> Response:
        return _sent("style.css", styles + files["style.css"])

    @app.get("/controls")
    async def choices(request: Request) -> JSONResponse:
        return JSONResponse(controls, headers=_HEADERS)

    buttons, gate = Buttons(models), Gate(limits)
    asked: dict[str, Events] = {
        "/open": buttons.open,
        "/answer": buttons.answer,
        "/poison": buttons.poison,
        "/takes": buttons.takes,
        "/certificate": buttons.certificate,
    }
    app.router.routes += [Route(path, _Button(do, gate, limits), methods=["POST"]) for path, do in asked.items()]
    return Doors(app, hosts=hosts)


class _Button:
    """An ASGI application for one address: what a button does, as events while it is done."""

    def __init__(self, do: Events, gate: Gate, limits: Limits) -> None:
        self._do = do
        self._gate = gate
        self._limits = limits

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        """Do it until it is done or the page has lost interest."""
        await exchange(scope, receive, send, gate=self._gate, limits=self._limits, work=self._work)

    async def _work(self, body: dict[str, Any], sender: Sender) -> None:
        async with self._gate.turn:
            try:
                async for event in self._do(body):
                    await sender.event(event)
            except StateError as error:
                raise RefusedError(400, str(error)) from error
            await sender.end(complete=True)


def _file(name: str) -> str:
    return (resources.files(__package__) / name).read_text(encoding="utf-8")


def _sent(name: str, text: str) -> Response:
    return Response(text, media_type=_KINDS[name], headers=_HEADERS)
