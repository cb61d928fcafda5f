"""The settings of consensus aggregation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from robustrag_integrations.defenses.agreement.claims.settings import ClaimSettings
from robustrag_integrations.defenses.agreement.numbers import exact_number
from robustrag_integrations.defenses.agreement.reader import ReplyReader
from robustrag_integrations.defenses.consensus import CONSENSUS, ConsensusOptions
from robustrag_integrations.defenses.consensus.counting import ConsensusRule
from robustrag_integrations.grouping.passages import PassageGroup
from robustrag_integrations.plans.asking import Quorum
from robustrag_integrations.prompts import CLAIM_TASKS, Prompt, PromptSet, Task, chosen_prompts, structured_prompts

if TYPE_CHECKING:
    from typing_extensions import Unpack


@dataclass(frozen=True)
class ConsensusSettings:
    """Everything that decides a consensus apart from the model.

    Attributes:
        rule: the rule that chooses the answer's keys.
        reader: a response to its keys.
        prompts: the prompts for the model.
        quorum: number of groups that must have been asked with success.
    """

    rule: ConsensusRule
    reader: ReplyReader
    prompts: PromptSet
    quorum: Quorum

    @classmethod
    def of(
        cls, *, task: Task | None = None, prompts: PromptSet | None = None, **options: Unpack[ConsensusOptions]
    ) -> ConsensusSettings | ClaimSettings:
        """Build the settings from user arguments; None stands for the default.

        Raises:
            ValueError, TypeError: an invalid argument; the message names it and the fix.
        """
        chosen_task = CONSENSUS.check_task(task)
        if chosen_task in CLAIM_TASKS:
            return ClaimSettings.of(CONSENSUS, chosen_task, prompts, options)
        given = CONSENSUS.checked(options)
        return cls(
            ConsensusRule(exact_number(given["share"]), given["min_support"]),
            ReplyReader.of(given),
            chosen_prompts(prompts, chosen_task),
            Quorum(given["quorum"]),
        )

    def isolated_prompts(self, query: str, groups: Sequence[PassageGroup]) -> list[Prompt]:
        """One prompt per group."""
        if self.reader.replies == "structured":
            return structured_prompts(self.prompts.isolated, query, [g.text for g in groups])
        isolated = self.prompts.isolated
        return [isolated.render(context=g.text, query=query) for g in groups]

    def as_dict(self) -> dict[str, Any]:
        """The settings, JSON-safe, as answers and certificates name them."""
        return {
            "share": str(self.rule.share),
            "min_support": self.rule.min_support,
            "task": "short_answer",
            "quorum": self.quorum.share,
            **self.reader.as_dict(),
        }
