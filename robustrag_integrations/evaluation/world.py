"""The fictional world that ships with the package: its articles, and questions about them with BM25 passages."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from importlib import resources
from pathlib import Path

from robustrag_integrations.corpus import BM25Index, Document, read_documents, split
from robustrag_integrations.evaluation.rows import BadRow, RawRow, read_rows


def world_folder() -> Path:
    """The folder of `world.jsonl` and `questions.jsonl`."""
    return Path(str(resources.files("robustrag_integrations") / "demo"))


def read_world(folder: Path) -> tuple[Document, ...]:
    """The articles."""
    return read_documents([str(folder / "world.jsonl")]).documents


def world_rows(top_k: int) -> Iterator[RawRow | BadRow]:
    """The questions as rows of the project's layout, each with its `top_k` best passages.

    Raises:
        ImportError: bm25s is not installed.
    """
    folder = world_folder()
    index = BM25Index(split(read_world(folder)))
    for row in read_rows(str(folder / "questions.jsonl")):
        if isinstance(row, BadRow):
            yield row
        else:
            found = index.search(row.value["question"], top_k)
            passages = [{"text": p.text, "id": p.id, "source": p.source} for p in found]
            yield replace(row, value={**row.value, "passages": passages})
