"""The settings of majority voting."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from robustrag_integrations.defenses.registry import VOTING
from robustrag_integrations.defenses.voting.options import parse_option
from robustrag_integrations.grouping.passages import PassageGroup
from robustrag_integrations.models.base import Response
from robustrag_integrations.plans.asking import Quorum, Reading, read_response
from robustrag_integrations.prompts import NO_INFORMATION, Prompt, PromptSet, Task, chosen_prompts, format_choices
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
        quorum: float | None = None,
        cut_replies: CutReplies | None = None,
    ) -> VotingSettings:
        """From user arguments; see `MajorityVoting`. None stands for the default.

        Raises:
            ValueError, TypeError: an invalid argument; the message names it and the fix.
        """
        return cls(
            chosen_prompts(prompts, VOTING.check_task(task)),
            Quorum(VOTING.value("quorum", quorum)),
            check_cut_replies(VOTING.value("cut_replies", cut_replies)),
        )

    def isolated_prompts(self, query: str, groups: Sequence[PassageGroup], choices: Sequence[str]) -> list[Prompt]:
        """One prompt per group; "No information found" is the last option."""
        options = (*choices, NO_INFORMATION)
        listed = format_choices(options)
        isolated = self.prompts.isolated
        return [isolated.render(context=g.text, query=query, choices=listed) for g in groups]

    def vote_of(self, response: Response, choices: Sequence[str]) -> Reading[int]:
        """A group's vote."""
        return read_response(response, lambda text: parse_option(text, choices), self.cut_replies, by_line=True)

    def as_dict(self) -> dict[str, Any]:
        """The settings, JSON-safe."""
        return {"task": "multiple_choice", "quorum": self.quorum.share, "cut_replies": self.cut_replies}
