"""`--settings FILE`: what a settings file says, for whatever is not typed."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from robustrag_integrations.cli.exits import UsageError
from robustrag_integrations.defenses.settings_file import VOTES, SavedSettings, SettingsError, load_settings

_NOT_TYPED: Any = object()


def add_settings(parser: Any) -> None:
    """Add --settings."""
    parser.add_argument(
        "--settings",
        metavar="FILE",
        help="a settings file, as robustrag tune writes it: the defence, its settings, what one vote is, and top-k; "
        "what is typed wins over it",
    )


def read_settings(path: str) -> SavedSettings:
    """The settings in a file.

    Raises:
        UsageError: it cannot be used.
    """
    try:
        return load_settings(path)
    except SettingsError as error:
        raise UsageError(f"--settings {error}") from error


def under_settings(
    parser: argparse.ArgumentParser, args: argparse.Namespace, argv: Sequence[str] | None
) -> argparse.Namespace:
    """The arguments, filled up from the file of `--settings`; `saved` has what is in it.

    Args:
        parser: what read the arguments.
        args: as they were typed, with the command's defaults.
        argv: what was typed.

    Raises:
        UsageError: the file cannot be used, or is for another defence than the one that was typed.
    """
    saved = args.saved = read_settings(args.settings)
    named = ("defense", "top_k", *VOTES, *saved.options)
    args.parser.set_defaults(**dict.fromkeys(named, _NOT_TYPED))
    again = vars(parser.parse_args(argv))
    typed = {name: again[name] for name in named if again[name] is not _NOT_TYPED}
    defense = typed.pop("defense", None) or saved.aggregation
    if defense != saved.aggregation:
        raise UsageError(f"--settings {saved.path} is for --defense {saved.aggregation}, not {defense}; leave one out")
    found = {"top_k": saved.top_k, **saved.under(typed)}
    args.defense = found.pop("aggregation")
    for name, value in found.items():
        if value is not None:
            setattr(args, name, value)
    return args
