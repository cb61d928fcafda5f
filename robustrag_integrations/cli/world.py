"""The fictional world that ships with the package, as the demonstration asks about it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from robustrag_integrations.evaluation.data.world import asked_about, read_world, world_folder

__all__ = ["Question", "read_questions", "read_world", "world_folder"]


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


def read_questions(folder: Path) -> list[Question]:
    """The questions, in the order of the file."""
    return [Question(q.question, q.answers[0], q.incorrect or "", q.choices) for q in asked_about(folder)]
