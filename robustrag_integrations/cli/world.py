"""The fictional world that ships with the package: its articles, and questions about them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from robustrag_integrations.corpus import Document, read_documents


@dataclass(frozen=True)
class Question:
    """A question about the world.

    Attributes:
        question: its words.
        answer: the right answer; None when nobody has told us.
        incorrect: what the attacker wants to be answered.
        choices: the options for voting; empty when there are none.
    """

    question: str
    answer: str | None
    incorrect: str
    choices: tuple[str, ...] = ()


def world_folder() -> Path:
    """The folder of `world.jsonl` and `questions.jsonl`."""
    return Path(str(resources.files("robustrag_integrations") / "demo"))


def read_world(folder: Path) -> tuple[Document, ...]:
    """The articles."""
    return read_documents([str(folder / "world.jsonl")]).documents


def read_questions(folder: Path) -> list[Question]:
    """The questions, in the order of the file."""
    lines = (folder / "questions.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines if line.strip()]
    return [Question(r["question"], r["answer"], r["incorrect"], tuple(r["choices"])) for r in rows]
