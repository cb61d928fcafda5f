"""The settings of majority voting."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from robustrag_integrations.defenses.agreement.plurality import Rule
from robustrag_integrations.defenses.agreement.rules import Disagreement
from robustrag_integrations.defenses.voting import VOTING, VotingOptions
from robustrag_integrations.defenses.voting.options import parse_option, shown_options
from robustrag_integrations.grouping.passages import PassageGroup
from robustrag_integrations.models.base import Response
from robustrag_integrations.plans.asking import Quorum, Reading, read_response
from robustrag_integrations.prompts import Prompt, PromptSet, Task, chosen_prompts
from robustrag_integrations.replies.reading import CutReplies

if TYPE_CHECKING:
    from typing_extensions import Unpack

RULE = Rule(min_support=1)
"""One vote is enough for an option; a tie is none."""


@dataclass(frozen=True)
class VotingSettings:
    """Everything that decides a vote apart from the model."""

    prompts: PromptSet
    quorum: Quorum
    cut_replies: CutReplies = "abstain"
    disagreement: Disagreement = "tell"

    @classmethod
    def of(
        cls, *, task: Task | None = None, prompts: PromptSet | None = None, **options: Unpack[VotingOptions]
    ) -> VotingSettings:
        """Build the settings from user arguments; None stands for the default.

        Raises:
            ValueError, TypeError: an invalid argument; the message names it and the fix.
        """
        given = VOTING.checked(options)
        return cls(
            chosen_prompts(prompts, VOTING.check_task(task), options.get("options")),
            Quorum(given["quorum"]),
            given["cut_replies"],
            given["disagreement"],
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
            "disagreement": self.disagreement,
        }
