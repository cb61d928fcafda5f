"""The fictional world that ships with the package: its articles, and questions about them with BM25 passages."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import resources
from pathlib import Path

from robustrag_integrations.corpus import BM25Index, Document, read_documents, split
from robustrag_integrations.evaluation.data.files import BadRow, DatasetError, RawRow, read_rows
from robustrag_integrations.evaluation.data.questions import EvalQuestion, question_of


def world_folder() -> Path:
    """The folder of `world.jsonl` and `questions.jsonl`."""
    return Path(str(resources.files("robustrag_integrations") / "demo"))


def read_world(folder: Path) -> tuple[Document, ...]:
    """The articles."""
    return read_documents([str(folder / "world.jsonl")]).documents


def asked_about(folder: Path) -> Iterator[EvalQuestion]:
    """The questions about the world, without passages."""
    return (question_of(row.value, row.line)[0] for row in _rows(folder))


def world_rows(top_k: int) -> Iterator[RawRow]:
    """The questions as rows of the project's layout, each with its `top_k` best passages."""
    folder = world_folder()
    index = BM25Index(split(read_world(folder)))
    for row in _rows(folder):
        found = index.search(row.value["question"], top_k)
        passages = [{"text": p.text, "id": p.id, "source": p.source} for p in found]
        yield RawRow(row.line, {**row.value, "passages": passages})


def _rows(folder: Path) -> Iterator[RawRow]:
    for row in read_rows(str(folder / "questions.jsonl")):
        if isinstance(row, BadRow):
            raise DatasetError(f"questions.jsonl, {row}")
        yield RawRow(row.line, {"passages": [], **row.value})
