"""What `robustrag serve`, `mcp` and `playground` have in common: an address, bounds, and a server until Ctrl-C."""

from __future__ import annotations

import argparse
import logging
from typing import TYPE_CHECKING, Any, Literal

from robustrag_integrations.cli.arguments import whole_number
from robustrag_integrations.cli.output import UsageError

if TYPE_CHECKING:
    import socket

    from starlette.types import ASGIApp

    from robustrag_integrations.serve.endpoint import Limits

# Flag -> field of Limits, smallest, largest, default, meaning.
_FLAGS: dict[str, tuple[str, int, int, int, str]] = {
    "max_concurrent": ("concurrent", 1, 1000, 8, "answers that are made at a time"),
    "max_waiting": ("waiting", 0, 10_000, 64, "requests that wait for their turn; further ones are refused"),
    "time_limit": ("seconds", 1, 86_400, 120, "seconds for an answer, waiting included"),
    "max_question": ("question_chars", 1, 1_000_000, 4000, "characters of a question"),
    "max_body": ("body_bytes", 1, 100_000_000, 1_000_000, "bytes of a request"),
}


def add_port(parser: Any, default: int) -> None:
    """Add --port."""
    parser.add_argument(
        "--port",
        default=default,
        type=whole_number(0, 65535),
        metavar="N",
        help=f"default {default}; 0 takes a free one",
    )


def add_limits(parser: argparse.ArgumentParser) -> None:
    """Add the options that bound what clients may ask."""
    group = parser.add_argument_group("limits")
    for name, (_, smallest, largest, default, meaning) in _FLAGS.items():
        group.add_argument(
            f"--{name.replace('_', '-')}",
            type=whole_number(smallest, largest),
            default=default,
            metavar="N",
            help=f"{meaning} (default {default})",
        )


def limits_of(args: argparse.Namespace) -> Limits:
    """Return the limits that were typed, with the defaults of the others."""
    from robustrag_integrations.serve.endpoint import Limits

    return Limits(**{field: getattr(args, name) for name, (field, *_) in _FLAGS.items()})


def needs(extra: str) -> ImportError:
    """Return the error of a command whose extra is not installed."""
    return ImportError(f"robustrag {extra} needs more packages: pip install 'robustrag-integrations[{extra}]'")


def listening_on(host: str, port: int) -> socket.socket:
    """Return a socket that listens, before anything long is done for it.

    Raises:
        UsageError: the address is taken, or is not this machine's.
    """
    from robustrag_integrations.serve.server import bound

    try:
        return bound(host, port)
    except (OSError, UnicodeError) as error:
        raise UsageError(f"cannot listen on {host}, --port {port}: {error}") from error


def serve_until_stopped(
    app: ASGIApp, listening: socket.socket, *, keep_alive: int = 5, lifespan: Literal["on", "off"] = "off"
) -> None:
    """Serve until the process is told to stop; answers under way are finished first. What is logged is shown."""
    from robustrag_integrations.serve.server import configured

    logging.basicConfig(format="%(asctime)s %(name)s: %(message)s")
    configured(app, keep_alive=keep_alive, lifespan=lifespan).run(sockets=[listening])
