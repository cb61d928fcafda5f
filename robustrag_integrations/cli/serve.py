"""`robustrag serve`: serves answers from your own documents at an OpenAI-compatible endpoint."""

from __future__ import annotations

import argparse
import logging
import os
from typing import TYPE_CHECKING, Any

from robustrag_integrations._util.errors import missing
from robustrag_integrations.cli.options import Answering, add_answering, open_methods, some_text, whole_number
from robustrag_integrations.cli.output import EXIT_ANSWERED, UsageError, complain
from robustrag_integrations.defenses.registry import BASELINES, METHODS, VANILLA

if TYPE_CHECKING:
    import socket

    from robustrag_integrations.serve.endpoint import Limits

KEY = "ROBUSTRAG_API_KEY"

# Flag -> field of Limits, largest, default, meaning.
_LIMITS: dict[str, tuple[str, int, int, str]] = {
    "max_concurrent": ("concurrent", 1000, 8, "answers that are made at a time"),
    "max_waiting": ("waiting", 10_000, 256, "requests that wait for their turn; further ones are refused"),
    "time_limit": ("seconds", 86_400, 120, "seconds for an answer, waiting included"),
    "max_question": ("question_chars", 1_000_000, 4000, "characters of a question"),
    "max_body": ("body_bytes", 100_000_000, 1_000_000, "bytes of a request"),
}

DESCRIPTION = """\
Serve your documents behind an OpenAI-compatible address: POST /v1/chat/completions,
GET /v1/models, GET /healthz. The last message is the question; the answer comes from the
documents, and its report (radius, sources, warnings) in the field "robustrag".
"""

EPILOG = f"""\
Clients ask for the model robustrag-NAME, by --method, or vanilla, with --vanilla. Only this machine
may ask. With {KEY} in the environment, clients must send it as their API key: set it before
--host 0.0.0.0, and put a server with TLS in front.

examples:
  robustrag serve --trusted handbook/ --docs uploads/
  {KEY}=... robustrag serve --docs notes/ --host 0.0.0.0 --port 8400

exit codes: 2 wrong usage, 1 failure, 130 interrupted
"""


BASIC = frozenset({
    "docs", "trusted", "task", "model", "base_url", "embedding", "top_k", "min_radius", "set", "host", "port",
    "vanilla",
})  # fmt: skip


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    add_answering(parser, {name: m for name, m in {**open_methods(), **BASELINES}.items() if name != VANILLA.name})
    about = "serve the model without a defence next to it, to compare with"
    parser.add_argument("--vanilla", action="store_true", help=about)
    parser.add_argument("--host", default="127.0.0.1", type=some_text, help="where to listen (default 127.0.0.1)")
    add_port(parser, 8400)
    about = "further names by which clients call this server, where no key is set"
    parser.add_argument("--allowed-hosts", nargs="+", type=some_text, default=[], metavar="NAME", help=about)
    about = "seconds for which an idle connection is kept (default 5); behind a proxy, more than it keeps its own"
    parser.add_argument("--keep-alive", default=5, type=whole_number(1, 3600), metavar="N", help=about)
    about = "requests may bring documents of their own (robustrag.documents), as red-team tools do"
    parser.add_argument("--allow-documents", action="store_true", help=about)
    add_limits(parser)


def add_port(parser: argparse.ArgumentParser, default: int) -> None:
    """Add --port."""
    about = f"default {default}; 0 takes a free one"
    parser.add_argument("--port", default=default, type=whole_number(0, 65535), metavar="N", help=about)


def add_limits(parser: argparse.ArgumentParser) -> None:
    """Add the options that bound what clients may ask."""
    group = parser.add_argument_group("limits")
    for name, (field, largest, default, meaning) in _LIMITS.items():
        kind = whole_number(0 if field == "waiting" else 1, largest)
        about = f"{meaning} (default {default})"
        group.add_argument(f"--{name.replace('_', '-')}", type=kind, default=default, metavar="N", help=about)


def limits_of(args: argparse.Namespace) -> Limits:
    """Return the limits that were typed, with the defaults of the others."""
    from robustrag_integrations.serve.endpoint import Limits

    return Limits(**{field: getattr(args, name) for name, (field, *_) in _LIMITS.items()})


def needs(extra: str) -> ImportError:
    """Return the error of a command whose extra is not installed."""
    return missing(f"robustrag {extra} needs more packages", extra)


def listening_on(host: str, port: int) -> socket.socket:
    """Return a socket that listens, before anything long is done for it."""
    from robustrag_integrations.serve.server import bound

    try:
        return bound(host, port)
    except (OSError, UnicodeError) as error:
        raise UsageError(f"cannot listen on {host}, --port {port}: {error}") from error


def serve_until_stopped(app: Any, listening: socket.socket, level: int = logging.NOTSET, **options: Any) -> None:
    """Serve until the process is told to stop; answers under way are finished first. Logs are shown meanwhile."""
    from robustrag_integrations.serve.server import configured

    package, root = logging.getLogger("robustrag_integrations"), logging.getLogger()
    before, handlers = package.level, [*root.handlers]
    logging.basicConfig(format="%(asctime)s %(name)s: %(message)s")
    package.setLevel(level)
    try:
        configured(app, **options).run(sockets=[listening])
    finally:
        package.setLevel(before)
        root.handlers[:] = handlers


def run(args: argparse.Namespace) -> int:
    """Serve until interrupted; see the module's help text."""
    asked = Answering(args)
    key = os.environ.get(KEY)
    if key is not None and (not key.strip() or key != key.strip() or not key.isascii() or not key.isprintable()):
        raise UsageError(f"{KEY} must be printable ASCII without spaces at its ends; unset it to ask for no key")
    try:
        from robustrag_integrations.serve.app import LOOPBACK_HOSTS, Service, create_app
        from robustrag_integrations.serve.server import address_of, is_loopback
    except ImportError as error:
        raise needs("serve") from error
    with listening_on(args.host, args.port) as listening:
        hosts = None
        if key is None:
            hosts = frozenset({*LOOPBACK_HOSTS, args.host, *args.allowed_hosts}) if is_loopback(args.host) else None
            if hosts is None:
                complain(f"warning: anybody who reaches {args.host} may ask, and read what documents say: set {KEY}")
        asked.read()
        asked.load()
        prefix = "robustrag-" if asked.method in METHODS else ""  # a baseline of others goes by its own name
        models = {f"{prefix}{asked.method}": asked.built()}
        models |= {"vanilla": asked.built(VANILLA.name)} if args.vanilla else {}
        service = Service(asked.library, models, limits_of(args), documents_allowed=args.allow_documents)
        app = create_app(service, key=key, hosts=hosts)
        complain(f"listening on {address_of(listening)}/v1 (models: {', '.join(service.models)})")
        serve_until_stopped(app, listening, level=logging.INFO, keep_alive=args.keep_alive)
    return EXIT_ANSWERED
