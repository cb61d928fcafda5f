"""Reading the file of a run. It is read as JSON and nothing else; lines that are not rows are reported and left out."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from robustrag_integrations._util.checks import is_whole_number
from robustrag_integrations.errors import RobustRAGError
from robustrag_integrations.evaluation.data.files import BadRow, json_lines
from robustrag_integrations.evaluation.score.rows import HEADER_SCHEMA, Row, latest_rows
from robustrag_integrations.evaluation.score.schema import misfit_in_row

_LONGEST_LINE = 64 * 1024 * 1024  # bytes


class NotARunError(RobustRAGError):
    """A file that is not a run of `robustrag eval`; the message says what is wrong, and what to do."""


@dataclass(frozen=True)
class Run:
    """The contents of a run's file.

    Attributes:
        name: the file's name.
        header: the first line's `config`, `versions` and number of `planned` rows; empty when there is none.
        rows: the rows, each of the shape `schema.Row`; of two with one key the later one that did not fail.
        bad: lines that are not rows.
        torn: True if the last line was cut off, as it is when a run is stopped in the middle of writing.
    """

    name: str
    header: Mapping[str, Any] = field(default_factory=dict)
    rows: tuple[Row, ...] = ()
    bad: tuple[BadRow, ...] = ()
    torn: bool = False


def read_run(path: str | Path) -> Run:
    """Read a run.

    Raises:
        NotARunError: the file cannot be read, or holds nothing of a run.
    """
    header: Mapping[str, Any] = {}
    rows: list[Row] = []
    bad: list[BadRow] = []
    try:
        with Path(path).open("rb") as file:
            for found in json_lines(_bounded(file, path)):
                if isinstance(found, BadRow):
                    bad.append(found)
                elif isinstance(found.value, dict) and found.value.get("schema") == HEADER_SCHEMA:
                    header = found.value
                elif problem := _misfit(found.value):
                    bad.append(BadRow(found.line, problem))
                else:
                    rows.append(found.value)
                last = found
            torn = bool(bad) and last is bad[-1] and file.seek(-1, os.SEEK_END) >= 0 and file.read() != b"\n"
    except OSError as error:
        raise NotARunError(f"cannot read {str(path)!r}: {error.strerror}") from error
    if not rows and not header:
        raise NotARunError(_refusal(path, bad))
    return Run(Path(path).name, header, tuple(latest_rows(rows)), tuple(bad[: len(bad) - torn]), torn)


def missing_rows(run: Run) -> int:
    """The number of rows that the header plans and the file lacks; 0 where the untrusted header does not say."""
    planned = run.header.get("planned")
    return max(planned - len(run.rows), 0) if is_whole_number(planned, 0, 10**9) else 0


def _bounded(file: IO[bytes], path: str | Path) -> Iterator[bytes]:
    for number, line in enumerate(iter(lambda: file.readline(_LONGEST_LINE), b""), 1):
        if len(line) == _LONGEST_LINE:
            raise NotARunError(f"{path}, line {number}: longer than {_LONGEST_LINE >> 20} MiB: not a row")
        yield line


def _misfit(found: Any) -> str | None:
    return misfit_in_row(found) if isinstance(found, dict) else f"expected an object, got {type(found).__name__}"


def _refusal(path: str | Path, bad: list[BadRow]) -> str:
    first = str(bad[0]) if bad else "there is nothing in it"
    return f"{str(path)!r} is not a run ({first}); give the file that `robustrag eval` wrote"
