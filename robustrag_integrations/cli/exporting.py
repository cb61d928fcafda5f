"""Results as files, which `robustrag eval` and `robustrag report` write alike."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from robustrag_integrations.cli.exits import UsageError
from robustrag_integrations.cli.output import show

if TYPE_CHECKING:
    from robustrag_integrations.evaluation.show.tables import Table


def add_latex(group: Any) -> None:
    """Add --latex."""
    group.add_argument("--latex", metavar="FILE", help="the tables for a paper (booktabs), escaped; - prints them")


def check_results(files: Mapping[str, str | None], plots: str | None = None) -> None:
    """Refuse, before anything is asked, what could not be written afterwards.

    Args:
        files: the file of each flag; None where it is not given, - for standard output.
        plots: the folder of `--plots`, which is made where it is not there.

    Raises:
        UsageError: a file or the folder cannot be written.
    """
    for flag, path in files.items():
        if path not in (None, "-"):
            target = Path(path)
            if target.is_dir() or not target.parent.is_dir():
                raise UsageError(f"{flag} {path!r}: name a file in a folder that exists")
            if not os.access(target if target.exists() else target.parent, os.W_OK):
                raise UsageError(f"cannot write {flag} {path!r}: Permission denied")
    if plots is not None:
        try:
            Path(plots).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UsageError(f"cannot write figures to --plots {plots!r}: {error.strerror}") from error


def write_latex(path: str | None, tables: Sequence[Table]) -> None:
    """Write the file of `--latex`, where one is asked for; - prints it.

    Raises:
        UsageError: it cannot be written.
    """
    from robustrag_integrations.evaluation.show.latex import latex

    if path == "-":
        show(latex(tables))
    elif path is not None:
        write_result("--latex", path, latex(tables))


def write_result(flag: str, path: str, text: str) -> None:
    """Write a file that a flag names.

    Raises:
        UsageError: it cannot be written.
    """
    try:
        Path(path).write_text(text, encoding="utf-8", newline="")
    except OSError as error:
        raise UsageError(f"cannot write {flag} {path!r}: {error.strerror}") from error
