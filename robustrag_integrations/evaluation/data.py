"""Data sets: questions with a clean retrieval and right answers (paper, section V, "Datasets").

One loader serves the whole project. It reads the paper's files (RealtimeQA, NQ and Bio share a layout), the project's
own layout, both as a JSON list or as one JSON object per line, gzipped or not, and the fictional world that ships.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import PurePath

from robustrag_integrations.evaluation.questions import TASKS, EvalQuestion, EvalTask, for_task, question_of
from robustrag_integrations.evaluation.rows import BadRow, DatasetError, RawRow, read_rows

__all__ = ["TASKS", "BadRow", "Dataset", "DatasetError", "EvalQuestion", "EvalTask", "load_dataset"]

DEMO = "demo"
DEMO_TOP_K = 10


@dataclass(frozen=True)
class Dataset:
    """Questions to evaluate on.

    Attributes:
        name: `demo`, or the file's name without its endings.
        task: `qa` (short answers), `mc` (multiple choice) or `long` (long answers).
        questions: in the order of the file.
        bad_rows: the rows that were left out, as far as the file was read.
        top_k: how many passages the retrieval returns when it finds enough: what was asked for; None when a file
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
) -> Dataset:
    """Read a data set.

    Args:
        source: `demo` for the questions about the fictional world, or a file; see `questions.question_of` for its
            layouts.
        task: what is asked; None for what the first question asks: `long` if it says so, else `qa`.
        top_k: how many passages each question gets; None for all that a file gives, 10 for `demo`.
        limit: how many questions are read; None for all. Reading stops there.
        strict: stop at the first bad row, in place of leaving it out.

    Raises:
        DatasetError: the file cannot be read, holds no question at all, or (strict) a row is bad.
        ValueError: an argument makes no sense.
        ImportError: `demo` needs bm25s.
    """
    _check(task, top_k, limit)
    if source == DEMO:
        from robustrag_integrations.evaluation.world import world_rows

        top_k = top_k or DEMO_TOP_K
        rows: Iterable[RawRow | BadRow] = world_rows(top_k)
    else:
        rows = read_rows(source)
    found, bad, task = _collect(rows, source, task, limit, strict)
    if not found:
        raise DatasetError(f"{source}: there is no question in it{f' ({bad[0]})' if bad else ''}")
    cut = tuple(replace(q, passages=q.passages[:top_k]) for q in found)
    return Dataset(_name(source), task, cut, tuple(bad), top_k)


def _collect(
    rows: Iterable[RawRow | BadRow], source: str, task: EvalTask | None, limit: int | None, strict: bool
) -> tuple[list[EvalQuestion], list[BadRow], EvalTask]:
    found: list[EvalQuestion] = []
    bad: list[BadRow] = []
    seen: dict[str, tuple[str, str]] = {}
    for row in rows:
        result = row if isinstance(row, BadRow) else _parsed(row, task, seen)
        if isinstance(result, BadRow):
            if strict:
                raise DatasetError(f"{source}, {result}")
            bad.append(result)
            continue
        question, task = result
        found.append(question)
        if len(found) == limit:
            break
    return found, bad, task or "qa"


def _parsed(
    row: RawRow, task: EvalTask | None, seen: dict[str, tuple[str, str]]
) -> tuple[EvalQuestion, EvalTask] | BadRow:
    """The row as a question of the task; the task is the first question's when nobody has said."""
    try:
        question, long = question_of(row.value, row.line)
        task = task or ("long" if long else "qa")
        question = for_task(question, task)
    except ValueError as error:
        return row.bad(str(error))
    where = f"{row.unit} {row.line}"
    if question.id in seen:
        first, words = seen[question.id]
        if words == question.question:
            return row.bad(f"its id {question.id!r} and its question are those of {first} already")
        question = replace(question, id=_other_id(question.id, row.line, seen))
    seen[question.id] = (where, question.question)
    return question, task


def _other_id(name: str, line: int, taken: dict[str, tuple[str, str]]) -> str:
    names: Iterator[str] = (f"{name}#{line}{'+' * i}" for i in range(len(taken) + 1))
    return next(n for n in names if n not in taken)


def _name(source: str) -> str:
    name = PurePath(source).name
    for ending in (".gz", ".json", ".jsonl"):
        name = name.removesuffix(ending)
    return name or source


def _check(task: EvalTask | None, top_k: int | None, limit: int | None) -> None:
    if task is not None and task not in TASKS:
        raise ValueError(f"task={task!r} is unknown; use one of {', '.join(map(repr, TASKS))}")
    for name, number in (("top_k", top_k), ("limit", limit)):
        if number is not None and (isinstance(number, bool) or not isinstance(number, int) or number < 1):
            raise ValueError(f"{name}={number!r} must be a whole number of at least 1, or None")
