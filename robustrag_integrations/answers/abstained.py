"""The abstention that takes the place of a structured answer."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel

from robustrag_integrations.answers.answer import RobustAnswer


class Abstained(BaseModel):
    """An abstention where an object was asked for; false as a truth value, and its words as text.

    `abstained` tells it apart where it is a dict or JSON. The report says why; here no name of a source stands, as the
    object may go into a prompt.
    """

    text: str
    abstained: Literal[True] = True

    @classmethod
    def of(cls, answer: RobustAnswer) -> Abstained:
        """Wrap an answer that is an abstention."""
        return cls(text=answer.text)

    def __bool__(self) -> bool:
        return False

    def __str__(self) -> str:
        return self.text
