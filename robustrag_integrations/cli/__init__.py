"""The `robustrag` command: a module per command, imported when it is typed; `run(args)` returns the exit code.

Results go to standard output, everything else to standard error.
"""

from __future__ import annotations

import argparse
import importlib
import io
import os
import platform
import sys
import warnings
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from importlib import metadata
from importlib.util import find_spec
from typing import Any

from robustrag_integrations import __version__
from robustrag_integrations._util.errors import RobustRAGError, missing
from robustrag_integrations.cli.options import Parser, did_you_mean, mistake
from robustrag_integrations.cli.output import EXIT_FAILURE, EXIT_INTERRUPTED, EXIT_USAGE, UsageError, complain

COMMANDS = {
    "demo": "see attacks succeed and fail on a small corpus, offline",
    "playground": "poison passages in the browser, and see who falls for it",
    "ask": "ask your own documents",
    "serve": "an OpenAI-compatible endpoint",
    "mcp": "your own documents as an MCP tool",
    "certify": "the score that no attacker can get below, for a data set",
    "eval": "the paper's evaluation on your data and model: attacks, certificates, tables",
    "report": "a run as one page to read and to share",
}
"""The commands, each a module of this package with `DESCRIPTION`, `EPILOG`, `add(parser)` and `run(args)`.

One with many options has `BASIC`, those that `--help` shows, and may have `DETAILS`, which `--help-all` shows."""

_EVALUATE = ("certify", "eval", "report")
_EPILOG = """\
examples:
  robustrag demo                                     attack a small corpus, with and without a defence; offline
  robustrag ask "Who runs the mill?" --docs notes/   ask your own documents
  robustrag eval --limit 5                           attacks, scores and tables, as in the paper

exit codes: 0 done, 1 failure, 2 wrong usage, 3 no answer (abstained)
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code; None: the arguments of the process."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a terminal that cannot show a character shows its code
    words = list(sys.argv[1:] if argv is None else argv)
    typed = next((text for text in words if not text.startswith("-")), "")
    try:
        parser = command_parser(typed)
        if typed and typed not in COMMANDS:
            parser.error(f"there is no command {typed!r:.60}{did_you_mean(typed, COMMANDS)} ({', '.join(COMMANDS)})")
        args, unknown = parser.parse_known_args(words)
        if unknown:
            args.parser.error(mistake(args.parser, words, unknown))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            code: int = args.run(args)
        sys.stdout.flush()
    except SystemExit as done:  # argparse has printed the error or the help
        return done.code if isinstance(done.code, int) else EXIT_USAGE
    except UsageError as error:
        complain(f"error: {error}", f"try: robustrag {typed} --help")
        return EXIT_USAGE
    except (RobustRAGError, ImportError) as error:
        complain(f"error: {error}")
        return EXIT_FAILURE
    except OSError as error:
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115 - the interpreter flushes standard output once more at its end
        if not isinstance(error, BrokenPipeError):  # else the reader of the output has seen enough
            complain(f"error: {error}")
        return EXIT_FAILURE
    except KeyboardInterrupt as stop:
        complain(str(stop) or "interrupted")
        return EXIT_INTERRUPTED
    return code


def command_parser(only: str | None = None) -> argparse.ArgumentParser:
    """Return the parser of all commands; those outside `only` are known by name alone. ImportError names an extra."""
    raw = partial(argparse.RawDescriptionHelpFormatter, max_help_position=28)
    about = "Retrieval-augmented generation that a few planted documents cannot take over."
    parser = Parser(prog="robustrag", description=about, epilog=_EPILOG, formatter_class=raw)
    parser.add_argument("--version", action=_Version, nargs=0, help="what is installed: attach it to bug reports")
    commands = parser.add_subparsers(dest="command", required=True, metavar="command")
    for name, about in COMMANDS.items():
        command = commands.add_parser(name, help=about, formatter_class=raw)
        if only in (None, name):
            if name in _EVALUATE and find_spec("scipy") is None:  # now, and not after a long run
                raise missing("evaluations need scipy", "eval")
            module = importlib.import_module(f"{__name__}.{name}")
            command.description, command.epilog = module.DESCRIPTION, module.EPILOG
            command.basic, command.details = getattr(module, "BASIC", frozenset()), getattr(module, "DETAILS", "")
            command.set_defaults(run=module.run, parser=command)
            module.add(command)
    return parser


class _Version(argparse.Action):
    """Prints the versions of this program, of Python, and of the packages here that an extra may need."""

    def __call__(self, parser: argparse.ArgumentParser, *args: Any) -> None:
        from packaging.requirements import Requirement

        found = [f"robustrag {__version__}, Python {platform.python_version()}, {platform.platform()}"]
        for name in sorted({Requirement(text).name for text in metadata.requires("robustrag-integrations") or ()}):
            with suppress(metadata.PackageNotFoundError):
                found.append(f"{name} {metadata.version(name)}")
        print("\n".join(found))
        parser.exit()
