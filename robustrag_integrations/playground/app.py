"""The ASGI application: the page and the requests of its buttons."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable, Mapping
from importlib import resources
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from robustrag_integrations._util.display import printable
from robustrag_integrations._util.errors import ModelError
from robustrag_integrations._util.redaction import redacted
from robustrag_integrations._util.settings import Setting
from robustrag_integrations.corpus.retrieval import Library
from robustrag_integrations.defenses.registry import METHODS
from robustrag_integrations.drawing.notebook import style_sheet
from robustrag_integrations.playground import state
from robustrag_integrations.playground.answering import MODES, MOST_CORRUPTED, PLANTED, Buttons, Models
from robustrag_integrations.playground.state import State, StateError
from robustrag_integrations.serve.app import LOOPBACK_HOSTS, guarded
from robustrag_integrations.serve.endpoint import Admission, Endpoint, Limits, Reply, RequestError, Work

_LOG = logging.getLogger(__name__)

LARGEST_FILE = 20 << 20  # bytes of one that is dropped
LIMITS = Limits(body_bytes=2 * LARGEST_FILE, concurrent=1, waiting=16, seconds=600)

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


def create_app(models: Models, library: Library, start: State, *, limits: Limits = LIMITS) -> Starlette:
    """Create the ASGI application, which browsers may call by a name of this machine alone.

    The page begins with the state `start`, and finds passages in the library.
    """
    files = {name: (resources.files(__package__) / name).read_text(encoding="utf-8") for name in _KINDS}
    # The inline styles of a notebook cell as a style sheet: the page's policy allows no others.
    files["style.css"] = style_sheet(".evidence ") + files["style.css"]
    controls, buttons, admission = (
        controls_of(models, start),
        Buttons(models, library, example=bool(start.question)),
        Admission(limits),
    )
    names = ("read", "search", "answer", "poison", "certificate")
    asked: dict[str, Events] = {f"/{name}": getattr(buttons, name) for name in names}

    async def file(request: Request) -> Response:
        name = request.url.path[1:] or "page.html"
        return Response(files[name], media_type=_KINDS[name], headers=_HEADERS)

    async def choices(request: Request) -> JSONResponse:
        return JSONResponse(controls, headers=_HEADERS)

    routes = [Route(path, file) for path in ("/", "/script.js", "/style.css")]
    routes.append(Route("/controls", choices))
    routes += [Route(path, Endpoint(_work(do, admission), limits), methods=["POST"]) for path, do in asked.items()]
    return guarded(routes, hosts=LOOPBACK_HOSTS)


def _work(do: Events, admission: Admission) -> Work:

    async def work(body: dict[str, Any], reply: Reply) -> None:
        async with admission.turn():
            try:
                async for event in do(body):
                    await reply.event(event)
            except StateError as error:
                raise RequestError(400, str(error)) from error
            except ModelError as error:  # whoever asks owns passages and model, and may read what it says
                _LOG.error("no answer: %s", printable(redacted(str(error)), 1000))
                raise RequestError(502, str(error), code="model_failed") from error
            await reply.end()

    return work


def controls_of(models: Models, start: State) -> dict[str, Any]:
    """Return the choices on a page in JSON's types, read from the registries, plugins included."""
    return {
        "start": start.as_dict(),
        "methods": [
            {
                "name": method.name,
                "summary": method.summary,
                "tasks": [task for task in method.tasks if task != "multiple_choice"],
                "certified": method.name in METHODS,
                "settings": [_setting(each) for each in state.settable(method)],
            }
            for method in METHODS.values()
        ],
        "attacks": [{"name": a.name, "summary": a.summary} for a in PLANTED],
        "models": [{"name": name, "local": named.local} for name, named in models.named.items()],
        "groupings": list(state.GROUPINGS),
        "modes": list(MODES),
        "bounds": {
            "passages": state.MOST_PASSAGES,
            "passage": state.LONGEST_PASSAGE,
            "question": state.LONGEST_QUESTION,
            "name": state.LONGEST_NAME,
            "file": LARGEST_FILE,
            "corrupted": MOST_CORRUPTED,
        },
    }


def _setting(setting: Setting) -> dict[str, Any]:
    default = setting.default if setting.long_form is None else None  # the page does not know the task
    more = {"whole": setting.kind is int, "values": list(setting.values)}
    return {"name": setting.name, "default": default, "meaning": setting.help, **more}
