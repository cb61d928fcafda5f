"""`robustrag serve`: serves answers from your own documents at an OpenAI-compatible endpoint."""

from __future__ import annotations

import argparse
import logging
import os
from typing import TYPE_CHECKING

from robustrag_integrations.cli.arguments import some_text, whole_number
from robustrag_integrations.cli.defending import (
    Documents,
    add_answering,
    built_defense,
    check_defense,
    fill_in,
    open_methods,
)
from robustrag_integrations.cli.output import EXIT_ANSWERED, Progress, UsageError, complain
from robustrag_integrations.cli.serving import add_limits, add_port, limits_of, listening_on, needs, serve_until_stopped
from robustrag_integrations.defenses.registry import BASELINES, METHODS, VANILLA

if TYPE_CHECKING:
    from robustrag_integrations.serve.app import Service

KEY = "ROBUSTRAG_API_KEY"

DESCRIPTION = """\
Serve your documents behind an OpenAI-compatible address: POST /v1/chat/completions,
GET /v1/models, GET /healthz. The last message is the question; the answer comes from the
documents, and its report (radius, sources, warnings) in the field "robustrag".
"""

EPILOG = f"""\
models that clients ask for:
  robustrag-NAME  the defence of --defense, such as robustrag-consensus; others' baselines have no prefix
  vanilla         with --vanilla: the same documents and model without a defence, to compare with

who may ask:
  Only this machine by default. With {KEY} in the environment, clients must send it as
  their API key. Set it before --host 0.0.0.0, and put a server with TLS in front.

examples:
  robustrag serve --docs notes/
  robustrag serve --docs news.jsonl --defense consensus --model openai:my-model --base-url http://localhost:8000/v1
  {KEY}=... robustrag serve --docs notes/ --host 0.0.0.0 --port 8400

exit codes: 2 wrong usage, 1 failure, 130 interrupted
"""


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    add_answering(parser, {name: m for name, m in {**open_methods(), **BASELINES}.items() if name != VANILLA.name})
    parser.add_argument(
        "--vanilla", action="store_true", help="serve the model without a defence next to it, to compare with"
    )
    group = parser.add_argument_group("address")
    group.add_argument("--host", default="127.0.0.1", type=some_text, help="where to listen (default 127.0.0.1)")
    add_port(group, 8400)
    group.add_argument(
        "--allowed-hosts",
        nargs="+",
        type=some_text,
        default=[],
        metavar="NAME",
        help="further names by which clients call this server, where no key is set",
    )
    group.add_argument(
        "--keep-alive",
        default=5,
        type=whole_number(1, 3600),
        metavar="N",
        help="seconds for which an idle connection is kept (default 5); behind a proxy, more than it keeps its own",
    )
    group.add_argument(
        "--allow-documents",
        action="store_true",
        help="requests may bring documents of their own (robustrag.documents), as red-team tools do",
    )
    add_limits(parser)


def run(args: argparse.Namespace) -> int:
    """Serve until interrupted; see the module's help text."""
    fill_in(args)
    check_defense(args)
    key = _key()
    try:
        from robustrag_integrations.serve.access import LOOPBACK_HOSTS
        from robustrag_integrations.serve.app import create_app
        from robustrag_integrations.serve.server import address_of, is_loopback
    except ImportError as error:
        raise needs("serve") from error
    with listening_on(args.host, args.port) as listening:
        hosts = None
        if key is None:
            hosts = frozenset({*LOOPBACK_HOSTS, args.host, *args.allowed_hosts}) if is_loopback(args.host) else None
            if hosts is None:
                complain(f"warning: anybody who reaches {args.host} may ask, and read what documents say: set {KEY}")
        service = _service(args)
        app = create_app(service, key=key, hosts=hosts)
        logging.getLogger("robustrag_integrations").setLevel(logging.INFO)
        complain(f"listening on {address_of(listening)}/v1 (models: {', '.join(service.models)})")
        serve_until_stopped(app, listening, keep_alive=args.keep_alive)
    return EXIT_ANSWERED


def _key() -> str | None:
    """Return the API key from the environment.

    Raises:
        UsageError: it is set, and no client could send it.
    """
    key = os.environ.get(KEY)
    if key is not None and (not key.strip() or key != key.strip() or not key.isascii() or not key.isprintable()):
        raise UsageError(f"{KEY} must be printable ASCII without spaces at its ends; unset it to ask for no key")
    return key


def _service(args: argparse.Namespace) -> Service:
    from robustrag_integrations.serve.app import Service

    documents = Documents(args, Progress())
    prefix = "robustrag-" if args.defense in METHODS else ""  # a baseline of others goes by its own name
    names = {f"{prefix}{args.defense}": args.defense, **({"vanilla": VANILLA.name} if args.vanilla else {})}
    return Service(
        library=documents.library,
        models={
            name: built_defense(args, defense, documents.model, args.task or "short_answer")
            for name, defense in names.items()
        },
        limits=limits_of(args),
        documents_allowed=args.allow_documents,
    )
