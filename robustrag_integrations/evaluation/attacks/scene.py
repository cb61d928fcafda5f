"""The type of an attack, and the scene that it sees."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from robustrag_integrations.grouping.passages import Passage


class AttackedQuestion(Protocol):
    """The parts of a question that an attack needs; `evaluation.data.questions.EvalQuestion` says more of them."""

    @property
    def question(self) -> str: ...  # noqa: D102
    @property
    def answers(self) -> tuple[str, ...]: ...  # noqa: D102
    @property
    def incorrect(self) -> str | None: ...  # noqa: D102
    @property
    def choices(self) -> tuple[str, ...]: ...  # noqa: D102
    @property
    def poisoned(self) -> tuple[str, ...]: ...  # noqa: D102
    @property
    def poison_target(self) -> str | None: ...  # noqa: D102


@dataclass(frozen=True)
class Scene:
    """The attacker's view before writing: the question, the clean retrieval, and what may be planted.

    Attributes:
        choices: the options of a multiple-choice question; empty when there are none.
        poisoned: false texts about the question that others have written already.
        corruption_size: k', how many passages may be planted.
        repeat: number of times the malicious content is repeated in a passage.
        seed: for attacks that draw at random.
    """

    question: str
    answers: tuple[str, ...]
    target: str
    choices: tuple[str, ...]
    poisoned: tuple[str, ...]
    passages: tuple[Passage, ...]
    corruption_size: int
    repeat: int
    seed: int

    @property
    def truth(self) -> str:
        """The right answer that the retrieved passages hold, else the first."""
        texts = [p.text for p in self.passages]
        return next((a for a in self.answers if any(a in text for text in texts)), self.answers[0])

    @property
    def cover(self) -> str:
        """The disguise of a planted text: the best passage, on one line."""
        return " ".join(self.passages[0].text.split()) if self.passages else self.question


Writer = Callable[[Scene], "str | Sequence[str]"]
"""Writes the planted passages: one text for all of them, or several, which are planted in turn."""

Goal = Literal["answer", "link", "other"]
"""The criterion of success: the attacker's answer (or refusal) is given; the answer holds a link to the attacker; or
something that no answer's text shows, such as its cost in tokens and seconds."""


@dataclass(frozen=True)
class Attack:
    """A family of attacks.

    Attributes:
        summary: what a planted passage does, to follow "a passage that".
        write: None for no attack.
        repeat: number of times the malicious content is repeated in a passage by default.
        target: the answer that it wants; None where a question does not say.
        goal: the criterion of success.
    """

    name: str
    summary: str
    write: Writer | None
    repeat: int
    target: Callable[[AttackedQuestion], str | None] = lambda question: question.incorrect
    goal: Goal = "answer"
