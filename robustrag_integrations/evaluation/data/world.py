"""The fictional world that ships with the package: its articles, and questions about them with BM25 passages."""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from typing import Any

from robustrag_integrations.corpus import BM25Index, read_documents, split
from robustrag_integrations.evaluation.data.questions import EvalQuestion, question_of


def world_folder() -> Path:
    """The folder of `world.jsonl` and `questions.jsonl`."""
    return Path(str(resources.files("robustrag_integrations") / "evaluation" / "world"))


def world_index() -> BM25Index:
    """The articles, to search."""
    return BM25Index(split(read_documents([str(world_folder() / "world.jsonl")]).documents))


def world_questions() -> list[EvalQuestion]:
    """The questions about the world, without passages."""
    return [question_of(row, number)[0] for number, row in enumerate(_rows(), 1)]


def world_rows(top_k: int) -> Iterator[dict[str, Any]]:
    """The questions as rows of the project's layout, each with its `top_k` best passages."""
    index = world_index()
    for row in _rows():
        found = index.search(row["question"], top_k)
        yield {**row, "passages": [{"text": p.text, "id": p.id, "source": p.origin} for p in found]}


def _rows() -> list[dict[str, Any]]:
    lines = (world_folder() / "questions.jsonl").read_text(encoding="utf-8").splitlines()
    return [{"passages": [], **json.loads(line)} for line in lines]
