"""Reading the rows of a data file. Its author is not trusted: sizes are bounded, and a bad row costs only itself."""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from robustrag_integrations._util.display import printable
from robustrag_integrations._util.json_values import parsed
from robustrag_integrations.errors import RobustRAGError

LARGEST_FILE = 256 * 1024 * 1024  # bytes, unpacked
LARGEST_LIST = 64 * 1024 * 1024  # bytes of a JSON list, which has to be read as a whole
MOST_ROWS = 1_000_000
_GZIP = b"\x1f\x8b"


class DatasetError(RobustRAGError):
    """An unusable data set; the message names the file, the row if there is one, and what to do."""


@dataclass(frozen=True)
class BadRow:
    """A row that was left out: its line in the file, or its place in a JSON list, from 1, and what is wrong."""

    line: int
    reason: str
    unit: str = "line"

    def __str__(self) -> str:
        return f"{self.unit} {self.line}: {self.reason}"


@dataclass(frozen=True)
class RawRow:
    """A row of the file: any JSON value."""

    line: int
    value: Any
    unit: str = "line"


def read_rows(path: str) -> Iterator[RawRow | BadRow]:
    """The rows of a file in order: of one JSON list, or one JSON value per line; either may be gzipped.

    A file that is named `.json` or begins like a list is read as a list, unless it is named `.jsonl`.
    """
    try:
        with Path(path).open("rb") as file:
            packed = file.read(2) == _GZIP
            file.seek(0)
            data = (gzip.GzipFile(fileobj=file) if packed else file).read(LARGEST_FILE + 1)
    except (OSError, EOFError, zlib.error, ValueError) as error:
        raise DatasetError(f"cannot read {path!r}: {error}") from error
    if len(data) > LARGEST_FILE:
        raise DatasetError(f"{path} holds more than {LARGEST_FILE >> 20} MiB; split it into smaller files")
    data, name = data.removeprefix(b"\xef\xbb\xbf"), path.lower().removesuffix(".gz")
    if name.endswith(".json") or (not name.endswith(".jsonl") and data.lstrip()[:1] == b"["):
        yield from _items(data, path)
        return
    for count, row in enumerate(json_lines(io.BytesIO(data))):
        if count >= MOST_ROWS:
            raise DatasetError(f"{path} holds more than {MOST_ROWS:,} rows; split it into smaller files")
        yield row


def _items(data: bytes, path: str) -> Iterator[RawRow | BadRow]:
    if len(data) > LARGEST_LIST:
        raise DatasetError(
            f"{path} is a JSON list of more than {LARGEST_LIST >> 20} MiB; write one question per line (.jsonl)"
        )
    rows = _value(data)
    if isinstance(rows, str):
        raise DatasetError(f"{path}: {rows}; a file with one question per line must be named .jsonl")
    if not isinstance(rows[0], list):
        raise DatasetError(f"{path}: expected a JSON list of questions, got {type(rows[0]).__name__}")
    yield from (RawRow(number, row, "item") for number, row in enumerate(rows[0], 1))


def json_lines(lines: Iterable[bytes]) -> Iterator[RawRow | BadRow]:
    """The values of lines that are not empty; one that is no JSON is a bad row."""
    for number, line in enumerate(lines, 1):
        if line.strip():
            found = _value(line)
            yield BadRow(number, found) if isinstance(found, str) else RawRow(number, found[0])


def _value(data: bytes) -> tuple[Any] | str:
    """The value of a JSON text, or what is wrong with it."""
    try:
        return (parsed(data.decode("utf-8")),)
    except RecursionError:
        return "nested too deeply"
    except UnicodeDecodeError as error:
        return f"not UTF-8 text (byte {error.start:,})"
    except ValueError as error:
        return f"not JSON ({printable(str(error), 120)})"
