"""Data sets: questions with a clean retrieval and right answers (paper, section V, "Datasets").

One loader reads the paper's files (RealtimeQA, NQ and Bio share a layout), the project's own layout, and the fictional
world that ships. A file's author is not trusted: sizes are bounded, and a bad row costs only itself.
"""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path, PurePath
from typing import Any

from robustrag_integrations._util.display import printable
from robustrag_integrations._util.errors import RobustRAGError
from robustrag_integrations._util.json_values import parsed
from robustrag_integrations.evaluation.data.questions import EvalQuestion, for_task, question_of
from robustrag_integrations.text.prompts import Task

DEMO_TOP_K = 10
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
    try:
        return (parsed(data.decode("utf-8")),)
    except RecursionError:
        return "nested too deeply"
    except UnicodeDecodeError as error:
        return f"not UTF-8 text (byte {error.start:,})"
    except ValueError as error:
        return f"not JSON ({printable(str(error), 120)})"


@dataclass(frozen=True)
class Dataset:
    """Questions to evaluate on, in the order of the file; `top_k` is None where each has as many passages as it has."""

    name: str
    task: Task
    questions: tuple[EvalQuestion, ...]
    bad_rows: tuple[BadRow, ...] = ()
    top_k: int | None = None


def load_dataset(
    source: str, *, task: Task | None = None, top_k: int | None = None, limit: int | None = None
) -> Dataset:
    """Read a data set.

    Args:
        source: `demo` for the questions about the fictional world, or a file (`questions.question_of` has its layouts).
        task: the task; None for that of the first question: `long_form` if it says so, else `short_answer`.
        top_k: number of passages of each question; None for all that a file gives, 10 for `demo`.
        limit: number of questions that are read; None for all. Reading stops there.

    Raises:
        DatasetError: the file cannot be read, or holds no question at all.
        ImportError: `demo` needs bm25s.
    """
    from robustrag_integrations.evaluation.data.world import world_rows

    rows: Iterable[RawRow | BadRow]
    if source == "demo":
        top_k = top_k or DEMO_TOP_K
        rows = (RawRow(number, row) for number, row in enumerate(world_rows(top_k), 1))
    else:
        rows = read_rows(source)
    found: dict[str, EvalQuestion] = {}  # each under an id that no other has
    bad: list[BadRow] = []
    places: dict[tuple[str, str], str] = {}
    for row in rows:
        try:
            if isinstance(row, BadRow):
                raise ValueError(row.reason)
            question, long = question_of(row.value, row.line)
            task = task or ("long_form" if long else "short_answer")
            question = for_task(question, task)
            known = question.id, question.question
            if known in places:
                raise ValueError(f"its id {question.id!r} and its question are those of {places[known]} already")
        except ValueError as error:
            bad.append(BadRow(row.line, str(error), row.unit))
        else:
            places[known] = f"{row.unit} {row.line}"
            name = question.id if question.id not in found else f"{question.id}#{row.line}"
            while name in found:
                name += "+"
            found[name] = replace(question, id=name, passages=question.passages[:top_k])
        if len(found) == limit:
            break
    if not found:
        raise DatasetError(f"{source}: it holds no question{f' ({bad[0]})' if bad else ''}")
    name = PurePath(source).name.removesuffix(".gz").removesuffix(".json").removesuffix(".jsonl") or source
    return Dataset(name, task or "short_answer", tuple(found.values()), tuple(bad), top_k)
