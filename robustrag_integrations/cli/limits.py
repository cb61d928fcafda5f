"""The options that bound what clients of a server may ask: `robustrag serve` and `robustrag mcp`."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from robustrag_integrations.cli.arguments import whole_number

if TYPE_CHECKING:
    from robustrag_integrations.serve.limits import Limits

# Flag -> field of Limits, smallest, largest, default, meaning.
_FLAGS: dict[str, tuple[str, int, int, int, str]] = {
    "max-concurrent": ("concurrent", 1, 1000, 8, "answers that are made at a time"),
    "max-waiting": ("waiting", 0, 10_000, 64, "requests that wait for their turn; further ones are refused"),
    "time-limit": ("seconds", 1, 86_400, 120, "seconds for an answer, waiting included"),
    "max-question": ("question_chars", 1, 1_000_000, 4000, "characters of a question"),
    "max-body": ("body_bytes", 1, 100_000_000, 1_000_000, "bytes of a request"),
    "max-documents": ("documents", 1, 1000, 50, "documents that a request may bring"),
}


def add_limits(parser: argparse.ArgumentParser, *, documents: bool = False) -> None:
    """Add the options; `documents` if requests may bring some."""
    group = parser.add_argument_group("limits")
    for flag, (_, smallest, largest, default, meaning) in _FLAGS.items():
        if flag == "max-documents" and not documents:
            continue
        group.add_argument(
            f"--{flag}",
            type=whole_number(smallest, largest),
            default=default,
            metavar="N",
            help=f"{meaning} (default {default})",
        )


def limits_of(args: argparse.Namespace) -> Limits:
    """Return the limits that were typed, with the defaults of the others."""
    from robustrag_integrations.serve.limits import Limits

    values: dict[str, Any] = {
        field: getattr(args, name)
        for flag, (field, *_) in _FLAGS.items()
        if hasattr(args, name := flag.replace("-", "_"))
    }
    return Limits(**values)
