"""Data sets: questions with a clean retrieval and right answers (paper, section V, "Datasets").

One loader serves the whole project. It reads the paper's files (RealtimeQA, NQ and Bio share a layout), the project's
own layout, both as a JSON list or as one JSON object per line, gzipped or not, and the fictional world that ships.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import Any

from robustrag_integrations._util.checks import is_whole_number
from robustrag_integrations._util.entry_points import Table
from robustrag_integrations._util.redaction import in_one_line
from robustrag_integrations.corpus.documents import CorpusError
from robustrag_integrations.errors import INTERRUPTS
from robustrag_integrations.evaluation.data.files import BadRow, DatasetError, RawRow, read_rows
from robustrag_integrations.evaluation.data.questions import (
    TASKS,
    EvalQuestion,
    EvalTask,
    for_task,
    layout_names,
    question_of,
)

__all__ = ["TASKS", "BadRow", "Dataset", "DatasetError", "EvalQuestion", "EvalTask", "load_dataset"]

DEMO = "demo"

Rows = Callable[[], "str | os.PathLike[str] | Iterable[Any]"]
DEMO_TOP_K = 10


def _rows(name: str, found: object) -> Rows:
    """Check that another package's entry point names a function that gives rows, and return it.

    Raises:
        TypeError: it is no function.
        ValueError: the name is that of the set that ships.
    """
    if name == DEMO:
        raise ValueError("the name is taken by what ships with robustrag")
    if not callable(found):
        raise TypeError(f"must be a function that returns rows or a file's path, got {type(found).__name__}")
    rows: Rows = found
    return rows


def _lists() -> str:
    from robustrag_integrations.evaluation.data.world import world_folder

    return str(world_folder() / "lists.jsonl")


DATASETS: Table[Rows] = Table("robustrag.datasets", {"demo-lists": _lists}, _rows)
"""Functions without arguments that return a file's path, or rows as a file holds them (`questions.question_of`)."""


@dataclass(frozen=True)
class Dataset:
    """Questions to evaluate on.

    Attributes:
        name: `demo`, or the file's name without its endings.
        task: `qa` (short answers), `mc` (multiple choice) or `long` (long answers).
        questions: in the order of the file.
        bad_rows: the rows that were left out, as far as the file was read.
        top_k: number of passages that the retrieval returns when it finds enough: what was asked for; None when a file
            gives each question as many as it has.
    """

    name: str
    task: EvalTask
    questions: tuple[EvalQuestion, ...]
    bad_rows: tuple[BadRow, ...] = ()
    top_k: int | None = None


def load_dataset(
    source: str,
    *,
    task: EvalTask | None = None,
    top_k: int | None = None,
    limit: int | None = None,
    strict: bool = False,
    layout: str | None = None,
    contexts: Sequence[str] = (),
) -> Dataset:
    """Read a data set.

    Args:
        source: `demo` for the questions about the fictional world, `demo-lists` for those with several right answers,
            a file (`questions.question_of` has its layouts), or the name of a data set of another package. A file of
            that name comes first.
        task: what is asked; None for what the first question asks: `long` if it says so, else `qa`.
        top_k: how many passages each question gets; None for all that a file gives, 10 for `demo`.
        limit: number of questions that are read; None for all. Reading stops there.
        strict: stop at the first bad row, in place of leaving it out.
        layout: how the rows are laid out (`questions.layout_names`); None: they are recognised by their keys.
        contexts: files and folders in which BM25 finds passages for questions that bring none.

    Raises:
        DatasetError: the file cannot be read, holds no question at all, or (strict) a row is bad.
        ValueError: an invalid argument.
        ImportError: `demo` needs bm25s.
    """
    _check(task, top_k, limit)
    if layout is not None and layout not in layout_names():
        raise ValueError(f"layout={layout!r} is unknown; use one of {', '.join(map(repr, layout_names()))}")
    if source == DEMO:
        from robustrag_integrations.evaluation.data.world import world_rows

        top_k = top_k or DEMO_TOP_K
        rows: Iterable[RawRow | BadRow] = world_rows(top_k)
    else:
        rows = rows_of(source)
    found, bad, task = _collect(rows, source, task, limit, strict, layout)
    if not found:
        raise DatasetError(f"{source}: it holds no question{f' ({bad[0]})' if bad else ''}")
    found = _with_contexts(found, contexts, top_k or DEMO_TOP_K)
    cut = tuple(replace(q, passages=q.passages[:top_k]) for q in found)
    return Dataset(_name(source), task, cut, tuple(bad), top_k)


def _with_contexts(questions: list[EvalQuestion], contexts: Sequence[str], top_k: int) -> list[EvalQuestion]:
    """The questions, those without passages with what BM25 finds for them."""
    if not contexts or all(q.passages for q in questions):
        return questions
    from robustrag_integrations.corpus import BM25Index, read_documents, split

    try:
        index = BM25Index(split(read_documents(list(contexts)).documents))
    except CorpusError as error:
        raise DatasetError(f"contexts: {error}") from error
    return [q if q.passages else replace(q, passages=tuple(index.search(q.question, top_k))) for q in questions]


def _collect(
    rows: Iterable[RawRow | BadRow],
    source: str,
    task: EvalTask | None,
    limit: int | None,
    strict: bool,
    layout: str | None,
) -> tuple[list[EvalQuestion], list[BadRow], EvalTask]:
    found: list[EvalQuestion] = []
    bad: list[BadRow] = []
    seen = _Seen()
    for row in rows:
        try:
            if isinstance(row, BadRow):
                raise _BadRowError(row)
            question, task = _parsed(row, task, layout)
            found.append(seen.told_apart(question, row))
        except _BadRowError as error:
            if strict:
                raise DatasetError(f"{source}, {error.row}") from error
            bad.append(error.row)
        if len(found) == limit:
            break
    return found, bad, task or "qa"


class _BadRowError(Exception):
    def __init__(self, row: BadRow) -> None:
        self.row = row


def _parsed(row: RawRow, task: EvalTask | None, layout: str | None) -> tuple[EvalQuestion, EvalTask]:
    """The row as a question of the task; the first question decides where the task is not given."""
    try:
        question, long = question_of(row.value, row.line, layout)
        task = task or ("long" if long else "qa")
        return for_task(question, task), task
    except ValueError as error:
        raise _BadRowError(row.bad(str(error))) from error


class _Seen:
    """The questions read so far, by id."""

    def __init__(self) -> None:
        self._places: dict[tuple[str, str], str] = {}
        self._ids: set[str] = set()

    def told_apart(self, question: EvalQuestion, row: RawRow) -> EvalQuestion:
        """The question with an id that no other has. The same question under the same id is a bad row."""
        known, place = (question.id, question.question), f"{row.unit} {row.line}"
        if known in self._places:
            raise _BadRowError(
                row.bad(f"its id {question.id!r} and its question are those of {self._places[known]} already")
            )
        self._places[known] = place
        name = question.id if question.id not in self._ids else f"{question.id}#{row.line}"
        while name in self._ids:
            name += "+"
        self._ids.add(name)
        return replace(question, id=name)


def _name(source: str) -> str:
    name = PurePath(source).name
    for ending in (".gz", ".json", ".jsonl"):
        name = name.removesuffix(ending)
    return name or source


def _check(task: EvalTask | None, top_k: int | None, limit: int | None) -> None:
    if task is not None and task not in TASKS:
        raise ValueError(f"task={task!r} is unknown; use one of {', '.join(map(repr, TASKS))}")
    for name, number in (("top_k", top_k), ("limit", limit)):
        if number is not None and not is_whole_number(number, 1):
            raise ValueError(f"{name}={number!r} must be a whole number of at least 1, or None")


def rows_of(source: str) -> Iterable[RawRow | BadRow]:
    """The rows of a file, or of a data set of another package where there is no such file.

    Raises:
        DatasetError: it cannot be read.
    """
    if os.path.exists(source) or source not in DATASETS:
        return read_rows(source)
    try:
        found = DATASETS[source]()
    except INTERRUPTS:
        raise
    except BaseException as error:
        raise _broken(source, error) from error
    return read_rows(os.fspath(found)) if isinstance(found, (str, os.PathLike)) else _numbered(source, found)


def _numbered(source: str, rows: Iterable[Any]) -> Iterator[RawRow]:
    try:
        for number, row in enumerate(rows, 1):
            yield RawRow(number, row, "item")
    except INTERRUPTS:
        raise
    except BaseException as error:
        raise _broken(source, error) from error


def _broken(source: str, error: BaseException) -> DatasetError:
    return DatasetError(f"{source}: the package {DATASETS.package_of(source)} cannot read it: {in_one_line(error)}")
