"""The fictional world that ships with the package: its articles, and questions about them with BM25 passages."""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from typing import Any

from robustrag_integrations.corpus import BM25Index, read_documents, split
from robustrag_integrations.evaluation.data.questions import EvalQuestion, question_of
from robustrag_integrations.grouping.passages import Passage


def world_folder() -> Path:
    """The folder of `world.jsonl` and `questions.jsonl`."""
    return Path(str(resources.files("robustrag_integrations") / "evaluation" / "world"))


def read_world(folder: Path) -> tuple[Passage, ...]:
    """The articles."""
    return read_documents([str(folder / "world.jsonl")]).documents


def asked_about(folder: Path) -> Iterator[EvalQuestion]:
    """The questions about the world, without passages."""
    return (question_of(row, number)[0] for number, row in enumerate(_rows(folder), 1))


def world_rows(top_k: int) -> Iterator[dict[str, Any]]:
    """The questions as rows of the project's layout, each with its `top_k` best passages."""
    folder = world_folder()
    index = BM25Index(split(read_world(folder)))
    for row in _rows(folder):
        found = index.search(row["question"], top_k)
        yield {**row, "passages": [{"text": p.text, "id": p.id, "source": p.origin} for p in found]}


def _rows(folder: Path) -> list[dict[str, Any]]:
    lines = (folder / "questions.jsonl").read_text(encoding="utf-8").splitlines()
    return [{"passages": [], **json.loads(line)} for line in lines]
