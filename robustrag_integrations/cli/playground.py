"""`robustrag playground`: poison passages in the browser, and see which defences fall for them."""

from __future__ import annotations

import argparse
from contextlib import closing
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from robustrag_integrations.cli.options import add_base_url, add_docs, check_paths, indexes_of, model_name, named_model
from robustrag_integrations.cli.output import EXIT_ANSWERED, UsageError, complain
from robustrag_integrations.cli.serve import add_port, listening_on, needs, serve_until_stopped
from robustrag_integrations.models.providers import described, takes

if TYPE_CHECKING:
    from robustrag_integrations.corpus import Library
    from robustrag_integrations.playground.state import State

_FOUND = 12  # sources that are found; two more than are read, which come back when a planted one is removed

DESCRIPTION = """\
Open a page on this machine with a question and passages: edit them, plant an attack with
one click, and compare the answer of plain ("vanilla") RAG with that of a defence, its
radius, and who was outvoted.
"""

EPILOG = """\
The page chooses among the models named here, and cannot name another. Only this machine may open it;
it loads nothing from elsewhere and sends nothing but what goes to your model.

examples:
  robustrag playground
  robustrag playground --docs notes/ --model openai:my-model --base-url http://localhost:8000/v1
  robustrag playground --model bundled --model openai:my-model --base-url http://localhost:8000/v1

exit codes: 2 wrong usage, 1 failure, 130 interrupted
"""


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    about = f"may be repeated; {described('bundled')}"
    parser.add_argument("--model", action="append", type=model_name, metavar="MODEL", help=about)
    add_base_url(parser)
    add_docs(parser)
    add_port(parser, 8500)


def run(args: argparse.Namespace) -> int:
    """Serve the page until interrupted; see the module's help text."""
    names = args.model or ["bundled"]
    if args.docs or args.trusted:
        check_paths(args)
    elif args.embedding:
        raise UsageError("--embedding goes with --docs or --trusted")
    if args.base_url is not None and not any(takes(name, "base_url") for name in names):
        raise UsageError("--base-url: no --model here takes it")
    named = {name: named_model(name, args.base_url if takes(name, "base_url") else None) for name in names}
    try:
        from robustrag_integrations.evaluation.run.cache import CallCache
        from robustrag_integrations.playground.answering import Models
        from robustrag_integrations.playground.app import create_app
        from robustrag_integrations.serve.server import address_of
    except ImportError as error:
        raise needs("playground") from error
    with (
        listening_on("127.0.0.1", args.port) as listening,
        TemporaryDirectory(prefix="robustrag-playground-") as folder,
        closing(CallCache(folder)) as cache,
    ):
        library, start = _documents(args)
        app = create_app(Models(named, cache), library, start)
        complain(f"listening on {address_of(listening)}/ (open it in a browser; Ctrl-C ends it)")
        serve_until_stopped(app, listening)
    return EXIT_ANSWERED


def _documents(args: argparse.Namespace) -> tuple[Library, State]:
    """Return what is searched and what the page begins with: the user's documents, or the demo's world and question."""
    from robustrag_integrations.corpus import Library
    from robustrag_integrations.evaluation.data.world import world_index, world_questions
    from robustrag_integrations.playground.state import Row, State

    if args.docs or args.trusted:
        index, trusted, _ = indexes_of(args)
        return Library(index, _FOUND, trusted=trusted), State()
    case = world_questions()[0]
    library = Library(world_index(), _FOUND, per_source=None)
    rows = tuple(Row(p.text, p.origin or "") for p in library.search(case.question))
    return library, State(case.question, rows, answer=case.answers[0], target=case.incorrect or "")
