"""Data sets: questions with a clean retrieval and right answers (paper, section V, "Datasets").

One loader serves the whole project. It reads the paper's files (RealtimeQA, NQ and Bio share a layout), the project's
own layout, both as a JSON list or as one JSON object per line, gzipped or not, and the fictional world that ships.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import PurePath

from robustrag_integrations._util.checks import is_whole_number
from robustrag_integrations.evaluation.data.files import BadRow, DatasetError, RawRow, read_rows
from robustrag_integrations.evaluation.data.questions import (
    TASKS,
    EvalQuestion,
    EvalTask,
    for_task,
    question_of,
)

__all__ = ["TASKS", "BadRow", "Dataset", "DatasetError", "EvalQuestion", "EvalTask", "load_dataset"]

DEMO = "demo"

DEMO_LISTS = "demo-lists"
DEMO_TOP_K = 10


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
) -> Dataset:
    """Read a data set.

    Args:
        source: `demo` for the questions about the fictional world, `demo-lists` for those with several right answers,
            or a file (`questions.question_of` has its layouts).
        task: the task; None for that of the first question: `long` if it says so, else `qa`.
        top_k: number of passages of each question; None for all that a file gives, 10 for `demo`.
        limit: number of questions that are read; None for all. Reading stops there.

    Raises:
        DatasetError: the file cannot be read, or holds no question at all.
        ValueError: an invalid argument.
        ImportError: `demo` needs bm25s.
    """
    _check(task, top_k, limit)
    from robustrag_integrations.evaluation.data.world import world_folder, world_rows

    rows: Iterable[RawRow | BadRow]
    if source == DEMO:
        top_k = top_k or DEMO_TOP_K
        rows = world_rows(top_k)
    else:
        rows = read_rows(str(world_folder() / "lists.jsonl") if source == DEMO_LISTS else source)
    found, bad, task = _collect(rows, source, task, limit)
    if not found:
        raise DatasetError(f"{source}: it holds no question{f' ({bad[0]})' if bad else ''}")
    cut = tuple(replace(q, passages=q.passages[:top_k]) for q in found)
    return Dataset(_name(source), task, cut, tuple(bad), top_k)


def _collect(
    rows: Iterable[RawRow | BadRow], source: str, task: EvalTask | None, limit: int | None
) -> tuple[list[EvalQuestion], list[BadRow], EvalTask]:
    """The questions, the rows that are none, and the task: that of the first question where it is not given."""
    found: dict[str, EvalQuestion] = {}  # each under an id that no other has
    bad: list[BadRow] = []
    places: dict[tuple[str, str], str] = {}
    for row in rows:
        try:
            if isinstance(row, BadRow):
                raise ValueError(row.reason)
            question, long = question_of(row.value, row.line)
            task = task or ("long" if long else "qa")
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
            found[name] = replace(question, id=name)
        if len(found) == limit:
            break
    return list(found.values()), bad, task or "qa"


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
