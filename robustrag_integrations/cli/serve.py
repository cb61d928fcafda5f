"""`robustrag serve`: serves answers from your own documents at an OpenAI-compatible endpoint."""

from __future__ import annotations

import argparse
import logging
import os
import socket
import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from robustrag_integrations.answers.usage import prices_of
from robustrag_integrations.cli.arguments import add_model, add_prices, existing, some_text, whole_number
from robustrag_integrations.cli.defending import (
    add_settings,
    add_task,
    add_thresholds,
    built_defense,
    check_probabilities,
    check_rules,
    check_thresholds,
    default_defense,
)
from robustrag_integrations.cli.documents import add_documents, add_retrieval, per_source, read_index
from robustrag_integrations.cli.models import load_model, named_model, note_probe
from robustrag_integrations.cli.output import EXIT_ANSWERED, Progress, UsageError, complain
from robustrag_integrations.defenses.registry import BASELINES, METHODS, entry_of
from robustrag_integrations.defenses.vanilla import VANILLA
from robustrag_integrations.errors import ModelError, RobustRAGError
from robustrag_integrations.models.base import TextModel
from robustrag_integrations.prompts import Task
from robustrag_integrations.serve.limits import Limits, checked_origins

if TYPE_CHECKING:
    from robustrag_integrations.serve.service import Served, Service

KEY = "ROBUSTRAG_API_KEY"

DESCRIPTION = """\
Serve your documents behind an OpenAI-compatible address: POST /v1/chat/completions,
GET /v1/models, GET /healthz. The last message is the question; the answer comes from the
documents, and its report (radius, sources, warnings) in the field "robustrag".
"""

EPILOG = f"""\
models that clients ask for:
  robustrag-NAME  the defence of --defense, such as robustrag-consensus; others' baselines have no prefix
  vanilla         the same documents and model without a defence, to compare with

who may ask:
  Only this machine by default. With {KEY} in the environment, clients must send it as
  their API key. Set it before --host 0.0.0.0, and put a server with TLS in front.

examples:
  robustrag serve --docs notes/
  robustrag serve --docs news.jsonl --defense consensus --model openai:my-model --base-url http://localhost:8000/v1
  {KEY}=... robustrag serve --docs notes/ --host 0.0.0.0 --port 8400
  robustrag serve --docs notes/ --model openai:my-model --base-url http://localhost:8000/v1 --workers 4

exit codes: 2 wrong usage, 1 failure, 130 interrupted
"""


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    add_documents(parser)
    listed = {name: entry for name, entry in {**METHODS, **BASELINES}.items() if name != VANILLA.name}
    parser.add_argument(
        "--defense",
        choices=tuple(listed),
        help="default consensus, or the one that takes the settings given. "
        + "; ".join(f"{m.name}: {m.summary}" for m in listed.values()),
    )
    parser.add_argument("--no-vanilla", action="store_true", help="do not serve the undefended model next to it")
    add_task(parser)
    add_settings(parser)
    add_model(parser)
    add_retrieval(parser)
    add_thresholds(parser)
    parser.add_argument("--accept-sampling", action="store_true", help="do not warn that the model may sample")
    parser.add_argument(
        "--probe", type=existing, metavar="FILE", help="what robustrag probe --output found about this model; reported"
    )
    add_prices(parser)
    _add_address(parser)
    _add_processes(parser)
    _add_limits(parser)


def _web_page(given: str) -> str:
    try:
        return checked_origins([given])[0]
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _add_address(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("address")
    group.add_argument("--host", default="127.0.0.1", type=some_text, help="where to listen (default 127.0.0.1)")
    group.add_argument(
        "--port", default=8400, type=whole_number(0, 65535), metavar="N", help="default 8400; 0 takes a free one"
    )
    group.add_argument(
        "--allowed-hosts",
        nargs="+",
        type=some_text,
        default=[],
        metavar="NAME",
        help="further names by which clients call this server, where no key is set",
    )
    group.add_argument(
        "--cors-origins",
        nargs="+",
        type=_web_page,
        default=[],
        metavar="URL",
        help="web pages that may call it from a browser, such as http://localhost:3000 (default: none)",
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


def _add_processes(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--workers",
        type=whole_number(1, 256),
        default=1,
        metavar="N",
        help="processes that answer behind the one address (default 1), for more cores and a model on a server; each "
        "reads the documents, loads the model, and has the limits below to itself",
    )


def _add_limits(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("limits")
    for name, most, default, meaning in (
        ("max-concurrent", 1000, 8, "answers that are made at a time"),
        ("max-waiting", 10_000, 64, "requests that wait for their turn; further ones get 429"),
        ("time-limit", 86_400, 120, "seconds for an answer, waiting included"),
        ("max-question", 1_000_000, 4000, "characters of a question"),
        ("max-body", 100_000_000, 1_000_000, "bytes of a request"),
        ("max-documents", 1000, 50, "documents that a request may bring"),
    ):
        smallest = 0 if name == "max-waiting" else 1
        group.add_argument(
            f"--{name}",
            type=whole_number(smallest, most),
            default=default,
            metavar="N",
            help=f"{meaning} (default {default})",
        )


def run(args: argparse.Namespace) -> int:
    """Serve until interrupted; see the module's help text."""
    args.defense = args.defense or default_defense(args)
    check_thresholds(args, args.defense)
    check_rules(args, args.defense)
    check_probabilities(args.model, args.defense)
    key = _key()
    try:
        from robustrag_integrations.serve.app import LOOPBACK_HOSTS
        from robustrag_integrations.serve.server import bound, is_loopback
    except ImportError as error:
        raise ImportError(
            "serving needs starlette, pydantic and uvicorn: pip install 'robustrag-integrations[serve]'"
        ) from error
    try:
        listening = bound(args.host, args.port)
    except (OSError, UnicodeError) as error:
        raise UsageError(f"cannot listen on --host {args.host} --port {args.port}: {error}") from error
    with listening:
        hosts = None
        if key is None:
            hosts = frozenset({*LOOPBACK_HOSTS, args.host, *args.allowed_hosts}) if is_loopback(args.host) else None
            if hosts is None:
                complain(f"warning: anybody who reaches {args.host} may ask, and read what documents say: set {KEY}")
        typed = {name: value for name, value in vars(args).items() if name != "parser"}  # which cannot be pickled
        server = _Server(argparse.Namespace(**typed), listening, key, hosts)
        if args.workers == 1:
            server.serve(lambda: complain(server.said))
        else:
            _serve_in_processes(server)
    return EXIT_ANSWERED


@dataclass(frozen=True)
class _Server:
    """One server process; can be pickled.

    Attributes:
        args: the command's.
        listening: the socket.
        key: what clients must send.
        hosts: the names by which they may call it; None for any.
    """

    args: argparse.Namespace
    listening: socket.socket
    key: str | None
    hosts: frozenset[str] | None

    @property
    def said(self) -> str:
        """A line with the server's address and what it serves."""
        from robustrag_integrations.serve.server import address_of

        processes = f"; {self.args.workers} processes" if self.args.workers > 1 else ""
        return f"listening on {address_of(self.listening)} (models: {', '.join(_names(self.args))}{processes})"

    def serve(self, serving: Callable[[], Any]) -> None:
        """Load everything, announce it, and serve until told to stop."""
        from robustrag_integrations.serve.app import create_app
        from robustrag_integrations.serve.server import run as listen

        service = _service(self.args)
        app = create_app(service, key=self.key, hosts=self.hosts, origins=self.args.cors_origins)
        logging.basicConfig(format="%(asctime)s %(name)s: %(message)s")
        logging.getLogger("robustrag_integrations").setLevel(logging.INFO)
        serving()
        listen(app, self.listening, self.args.keep_alive)

    def __call__(self, serving: Callable[[], Any]) -> None:
        """Call `serve` in a process of its own."""
        from robustrag_integrations.serve.workers import WorkerError

        warnings.simplefilter("ignore")  # as for all commands
        try:
            self.serve(serving)
        except UsageError as error:
            raise WorkerError("usage", str(error)) from error
        except (RobustRAGError, ImportError) as error:
            raise WorkerError("failure", str(error)) from error


def _serve_in_processes(server: _Server) -> None:
    """Serve in several processes.

    Raises:
        UsageError: a process cannot do what was typed.
        ModelError: a process cannot load the model.
    """
    from robustrag_integrations.serve.workers import WorkerError, run_workers

    count, model = server.args.workers, server.args.model
    if named_model(model, server.args.base_url).local:
        complain(
            f"warning: --workers {count} holds {count} copies of the weights of {model!r} in memory, on one GPU too, "
            "and they compete for the same cores; behind a server (openai:NAME) all processes share one model"
        )
    try:
        run_workers(
            server,
            count,
            serving=lambda: complain(server.said),
            replaced=_warn_of_a_replaced_process,
        )
    except WorkerError as error:
        kind, message = error.args
        raise (UsageError if kind == "usage" else ModelError)(message) from error


def _warn_of_a_replaced_process(why: str, pause: float) -> None:
    with suppress(OSError):  # standard error is closed
        complain(f"warning: {why}; another one takes its place {f'in {pause:g} s' if pause else 'now'}")


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
    from robustrag_integrations.serve.service import Library, Service

    progress = Progress()
    progress.step(f"reading {', '.join(args.docs)}")
    index, _ = read_index(args, progress)
    progress.step(f"loading the model {args.model}")
    model = load_model(args.model, args.base_url)
    note_probe(model, args.probe)
    models = {name: _served(args, defense, model) for name, defense in _names(args).items()}
    return Service(
        library=Library(index, args.top_k, per_source(args), args.group_by),
        models=models,
        limits=Limits(
            body_bytes=args.max_body,
            question_chars=args.max_question,
            documents=args.max_documents,
            concurrent=args.max_concurrent,
            waiting=args.max_waiting,
            seconds=args.time_limit,
        ),
        documents_allowed=args.allow_documents,
        prices=None if args.prices is None else prices_of(args.prices),
    )


def _names(args: argparse.Namespace) -> dict[str, str]:
    """Return the served defences, by the names that clients ask for."""
    prefix = "robustrag-" if args.defense in METHODS else ""  # a baseline of others goes by its own name
    return {f"{prefix}{args.defense}": args.defense, **({} if args.no_vanilla else {"vanilla": VANILLA.name})}


def _served(args: argparse.Namespace, name: str, model: TextModel) -> Served:
    from robustrag_integrations.serve.service import Served

    open_task: Task = args.task or "short_answer"
    tasks: tuple[Task, ...] = (open_task, "multiple_choice")
    made = {task: built_defense(args, name, model, task) for task in tasks if task in entry_of(name).tasks}
    for defense in made.values():
        defense.accept_sampling = args.accept_sampling
    return Served(name, made.get(open_task), made.get("multiple_choice"))
