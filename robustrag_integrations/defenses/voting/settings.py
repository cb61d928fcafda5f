"""The settings of majority voting."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from robustrag_integrations.defenses.registry import VOTING
from robustrag_integrations.defenses.voting.options import parse_option, shown_options
from robustrag_integrations.grouping.passages import PassageGroup
from robustrag_integrations.models.base import Response
from robustrag_integrations.plans.asking import Quorum, Reading, read_response
from robustrag_integrations.prompts import Options, Prompt, PromptSet, Task, chosen_prompts
from robustrag_integrations.replies.reading import CutReplies, check_cut_replies


@dataclass(frozen=True)
class VotingSettings:
    """Everything that decides a vote apart from the model."""

    prompts: PromptSet
    quorum: Quorum
    cut_replies: CutReplies = "abstain"

    @classmethod
    def of(
        cls,
        *,
        task: Task | None = None,
        prompts: PromptSet | None = None,
        options: Options | None = None,
        quorum: float | None = None,
        cut_replies: CutReplies | None = None,
    ) -> VotingSettings:
        """Build the settings from user arguments, explained at `MajorityVoting`. None stands for the default.

        Raises:
            ValueError, TypeError: an invalid argument; the message names it and the fix.
        """
        return cls(
            chosen_prompts(prompts, VOTING.check_task(task), options),
            Quorum(VOTING.value("quorum", quorum)),
            check_cut_replies(VOTING.value("cut_replies", cut_replies)),
        )

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
            "options": self.prompts.options,
            "quorum": self.quorum.share,
            "cut_replies": self.cut_replies,
        }
