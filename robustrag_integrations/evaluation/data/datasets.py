"""Data sets: questions with a clean retrieval and right answers (paper, section V, "Datasets").

One loader reads the paper's files (RealtimeQA, NQ and Bio share a layout), RAMDocs, the project's own layout, and the
fictional world that ships.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import PurePath

from robustrag_integrations.evaluation.data.files import BadRow, DatasetError, RawRow, read_rows
from robustrag_integrations.evaluation.data.questions import EvalQuestion, EvalTask, for_task, question_of

DEMO_TOP_K = 10


@dataclass(frozen=True)
class Dataset:
    """Questions to evaluate on, in the order of the file.

    Attributes:
        name: `demo`, or the file's name without its endings.
        task: `qa` (short answers), `mc` (multiple choice) or `long` (long answers).
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
    source: str, *, task: EvalTask | None = None, top_k: int | None = None, limit: int | None = None
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
        ImportError: `demo` needs bm25s.
    """
    from robustrag_integrations.evaluation.data.world import world_folder, world_rows

    rows: Iterable[RawRow | BadRow]
    if source == "demo":
        top_k = top_k or DEMO_TOP_K
        rows = world_rows(top_k)
    else:
        rows = read_rows(str(world_folder() / "lists.jsonl") if source == "demo-lists" else source)
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
            found[name] = replace(question, id=name, passages=question.passages[:top_k])
        if len(found) == limit:
            break
    if not found:
        raise DatasetError(f"{source}: it holds no question{f' ({bad[0]})' if bad else ''}")
    name = PurePath(source).name.removesuffix(".gz").removesuffix(".json").removesuffix(".jsonl") or source
    return Dataset(name, task or "qa", tuple(found.values()), tuple(bad), top_k)
