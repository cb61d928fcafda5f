"""The claims of a long answer or a list, each with its own support and radius."""

from __future__ import annotations

from dataclasses import dataclass

from robustrag_integrations._util.display import printable
from robustrag_integrations._util.words import count_of


@dataclass(frozen=True)
class Claim:
    """One statement of a long answer, or one item of a list.

    Attributes:
        text: in the words that most of its groups write.
        support: how many votes make it.
        radius: how many votes can be replaced while it stays in the answer; None for one that is left out.
        origins: where the passages of the groups that make it are from, without repeats.
        groups: the indices of these groups.
    """

    text: str
    support: int
    radius: int | None
    origins: tuple[str, ...]
    groups: tuple[int, ...]

    def in_words(self, unit: str) -> str:
        """One line for a terminal."""
        radius = "" if self.radius is None else f", radius {self.radius}"
        named = printable(", ".join(self.origins), 80)
        return f"{printable(self.text, 160)} ({count_of(self.support, unit)}{radius}: {named})"
