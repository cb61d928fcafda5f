"""The settings of majority voting."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from robustrag_integrations.defenses.agreement.plurality import Rule
from robustrag_integrations.defenses.registry import METHODS, Method
from robustrag_integrations.defenses.settings import ChoiceSettings, GroupSettings
from robustrag_integrations.defenses.voting.options import parse_option, shown_options
from robustrag_integrations.grouping.passages import PassageGroup
from robustrag_integrations.models.base import Response
from robustrag_integrations.plans.asking import Reading, read_response
from robustrag_integrations.prompts import Prompt

RULE = Rule(min_support=1)
"""One vote is enough for an option; a tie is none."""


@dataclass(frozen=True, kw_only=True)
class VotingSettings(GroupSettings, ChoiceSettings):
    """Everything that decides a vote apart from the model."""

    method: ClassVar[Method] = METHODS["voting"]

    def isolated_prompts(self, query: str, groups: Sequence[PassageGroup], choices: Sequence[str]) -> list[Prompt]:
        """One prompt per group."""
        render = self.prompts.isolated.render
        return [
            render(context=g.text, query=query, choices=shown_options(choices, g.text, self.prompts)) for g in groups
        ]

    def vote_of(self, response: Response, choices: Sequence[str]) -> Reading[int]:
        """Return a group's vote."""
        return read_response(response, lambda text: parse_option(text, choices), self.cut_replies, by_line=True)

    def as_dict(self) -> dict[str, Any]:
        """The settings, JSON-safe."""
        return {
            "task": "multiple_choice",
            "options": self.options,
            "quorum": self.quorum,
            "cut_replies": self.cut_replies,
            "disagreement": self.disagreement,
        }
