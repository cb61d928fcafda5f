"""Reading the file of a run. It is read as JSON and nothing else; lines that are not rows are reported and left out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from robustrag_integrations._util.checks import is_whole_number
from robustrag_integrations._util.display import printable
from robustrag_integrations._util.json_values import parsed
from robustrag_integrations.errors import RobustRAGError
from robustrag_integrations.evaluation.score.rows import HEADER_SCHEMA, Row, latest_rows
from robustrag_integrations.evaluation.score.schema import misfit_in_row

_LONGEST_LINE = 64 * 1024 * 1024  # bytes


class NotARunError(RobustRAGError):
    """A file that is not a run of `robustrag eval`; the message says what is wrong, and what to do."""


@dataclass(frozen=True)
class BadLine:
    """A line that is not a row, and was left out.

    Attributes:
        number: its place in the file, from 1.
        reason: the fault, in words.
    """

    number: int
    reason: str


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
    bad: tuple[BadLine, ...] = ()
    torn: bool = False


def read_run(path: str | Path) -> Run:
    """Read a run.

    Raises:
        NotARunError: the file cannot be read, or holds nothing of a run.
    """
    header: Mapping[str, Any] = {}
    rows: list[Row] = []
    bad: list[BadLine] = []
    torn = False
    for number, line in _lines(Path(path)):
        found = _object(line)
        if isinstance(found, str):
            torn = not line.endswith(b"\n")
            if not torn:
                bad.append(BadLine(number, found))
        elif found.get("schema") == HEADER_SCHEMA:
            header = found
        elif problem := misfit_in_row(found):
            bad.append(BadLine(number, problem))
        else:
            rows.append(found)
    if not rows and not header:
        raise NotARunError(_refusal(path, bad))
    return Run(Path(path).name, header, tuple(latest_rows(rows)), tuple(bad), torn)


def missing_rows(run: Run) -> int:
    """The number of rows that the header plans and the file lacks; 0 where the untrusted header does not say."""
    planned = run.header.get("planned")
    return max(planned - len(run.rows), 0) if is_whole_number(planned, 0, 10**9) else 0


def _lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """The lines that are not empty, by number."""
    try:
        with path.open("rb") as file:
            for number, line in enumerate(iter(lambda: file.readline(_LONGEST_LINE), b""), 1):
                if len(line) == _LONGEST_LINE:
                    raise NotARunError(f"{path}, line {number}: longer than {_LONGEST_LINE >> 20} MiB: not a row")
                if line.strip():
                    yield number, line
    except OSError as error:
        raise NotARunError(f"cannot read {str(path)!r}: {error.strerror}") from error


def _object(line: bytes) -> dict[str, Any] | str:
    """Return a JSON object, or a description of the fault."""
    try:
        found = parsed(line.decode("utf-8"))
    except RecursionError:
        return "nested too deeply"
    except ValueError as error:  # bytes that are not UTF-8 among them
        return f"not JSON ({printable(str(error), 80)})"
    return found if isinstance(found, dict) else f"expected an object, got {type(found).__name__}"


def _refusal(path: str | Path, bad: list[BadLine]) -> str:
    first = f"line {bad[0].number}: {bad[0].reason}" if bad else "there is nothing in it"
    return f"{str(path)!r} is not a run ({first}); give the file that `robustrag eval` wrote"
