"""Results as files for papers and pages, which `robustrag eval` and `robustrag report` write alike."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from robustrag_integrations.cli.exits import UsageError
from robustrag_integrations.cli.output import show

if TYPE_CHECKING:
    from robustrag_integrations.evaluation.show.tables import Table


def add_exports(group: Any) -> None:
    """Add --latex and --markdown."""
    group.add_argument("--latex", metavar="FILE", help="the tables for a paper (booktabs), escaped; - prints them")
    group.add_argument("--markdown", metavar="FILE", help="the tables for a page, escaped; - prints them")


def write_exports(args: argparse.Namespace, tables: Sequence[Table]) -> None:
    """Write the files that were asked for.

    Raises:
        UsageError: a file cannot be written.
    """
    from robustrag_integrations.evaluation.show.exported import latex, markdown

    for flag, path, form in (("--latex", args.latex, latex), ("--markdown", args.markdown, markdown)):
        if path == "-":
            show(form(tables))
        elif path is not None:
            write_result(flag, path, form(tables))


def write_result(flag: str, path: str, text: str) -> None:
    """Write a file that a flag names.

    Raises:
        UsageError: it cannot be written.
    """
    try:
        Path(path).write_text(text, encoding="utf-8", newline="")
    except OSError as error:
        raise UsageError(f"cannot write {flag} {path!r}: {error.strerror}") from error
