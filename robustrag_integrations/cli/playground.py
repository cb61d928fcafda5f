"""`robustrag playground`: poison passages in the browser, and see which defences fall for them."""

from __future__ import annotations

import argparse
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from robustrag_integrations.cli.arguments import add_base_url, model_name, some_text, whole_number
from robustrag_integrations.cli.models import named_model
from robustrag_integrations.cli.output import EXIT_ANSWERED, Progress, UsageError, complain
from robustrag_integrations.models.providers import described, forms_that_take, takes

if TYPE_CHECKING:
    from robustrag_integrations.models.providers import NamedModel

DESCRIPTION = """\
Open a page on this machine with a question and passages: edit them, plant an attack with
one click, and compare the answer of plain ("vanilla") RAG with that of a defence, its
radius, who was outvoted, and what it would take.
"""

EPILOG = """\
models:
  The page chooses among the models named here, and cannot name another. It begins with the small
  reader that ships, which was trained to obey attackers, so that there is something to see.

who may open it:
  Only this machine by default. The page loads nothing from elsewhere and sends nothing but what
  goes to your model. Links hold everything that is on the page, passages included.

examples:
  robustrag playground
  robustrag playground --model bundled --model ./my-model
  robustrag playground --model openai:my-model --base-url http://localhost:8000/v1

exit codes: 2 wrong usage, 1 failure, 130 interrupted
"""


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument(
        "--model",
        action="append",
        type=model_name,
        metavar="MODEL",
        help=f"may be repeated; {described('bundled')}",
    )
    add_base_url(parser)
    parser.add_argument("--host", default="127.0.0.1", type=some_text, help="where to listen (default 127.0.0.1)")
    parser.add_argument(
        "--port", default=8500, type=whole_number(0, 65535), metavar="N", help="default 8500; 0 takes a free one"
    )


def run(args: argparse.Namespace) -> int:
    """Serve the page until interrupted; see the module's help text."""
    named = _models(args)
    try:
        from robustrag_integrations.evaluation.run.cache import CallCache
        from robustrag_integrations.playground.app import create_app
        from robustrag_integrations.playground.example import example
        from robustrag_integrations.playground.models import Models
        from robustrag_integrations.serve.app import LOOPBACK_HOSTS
        from robustrag_integrations.serve.server import address_of, bound, is_loopback
        from robustrag_integrations.serve.server import run as listen
    except ImportError as error:
        raise ImportError(
            "the playground needs starlette, pydantic and uvicorn: pip install 'robustrag-integrations[playground]'"
        ) from error
    try:
        listening = bound(args.host, args.port)
    except (OSError, UnicodeError) as error:
        raise UsageError(f"cannot listen on --host {args.host} --port {args.port}: {error}") from error
    with listening, TemporaryDirectory(prefix="robustrag-playground-") as folder:
        Progress().step("reading the example")
        hosts = frozenset({*LOOPBACK_HOSTS, args.host.lower()}) if is_loopback(args.host) else None
        if hosts is None:
            complain(f"warning: anybody who reaches {args.host} may ask your models; there is no key")
        cache = CallCache(folder)
        app = create_app(Models(named, cache), example(), hosts=hosts)
        complain(f"listening on {address_of(listening).removesuffix('v1')} (open it in a browser; Ctrl-C ends it)")
        try:
            listen(app, listening)
        finally:
            cache.close()
    return EXIT_ANSWERED


def _models(args: argparse.Namespace) -> dict[str, NamedModel]:
    """Return the models by the names that were given.

    Raises:
        UsageError: the address goes with none of them.
    """
    names = list(dict.fromkeys(args.model or ["bundled"]))
    if args.base_url is not None and not any(takes(name, "base_url") for name in names):
        raise UsageError(f"--base-url goes with --model {forms_that_take('base_url')}")
    return {name: named_model(name, args.base_url if takes(name, "base_url") else None) for name in names}
