"""The settings of consensus aggregation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from robustrag_integrations.abstention import abstention_of
from robustrag_integrations.defenses.agreement.lists import ListSettings
from robustrag_integrations.defenses.agreement.numbers import exact_number
from robustrag_integrations.defenses.agreement.reader import ReplyReader
from robustrag_integrations.defenses.consensus import CONSENSUS, ConsensusOptions
from robustrag_integrations.defenses.consensus.counting import ConsensusRule
from robustrag_integrations.defenses.keyword.settings import KeywordSettings
from robustrag_integrations.grouping.passages import PassageGroup
from robustrag_integrations.plans.asking import Quorum
from robustrag_integrations.prompts import Prompt, PromptSet, Task, chosen_prompts

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
    ) -> ConsensusSettings | KeywordSettings | ListSettings:
        """Build the settings from user arguments; None stands for the default.

        Raises:
            ValueError, TypeError: an invalid argument; the message names it and the fix.
        """
        chosen_task = CONSENSUS.check_task(task)
        given = CONSENSUS.checked(options)
        if chosen_task == "long_form":
            return KeywordSettings.of_majority(
                given["min_support"],
                prompts,
                quorum=given["quorum"],
                abstention=given["abstention"],
                cut_replies=given["cut_replies"],
            )
        if chosen_task == "list":
            return ListSettings(
                given["min_support"],
                chosen_prompts(prompts, "list"),
                Quorum(given["quorum"]),
                abstention_of(given["abstention"]),
                given["cut_replies"],
            )
        return cls(
            ConsensusRule(exact_number(given["share"]), given["min_support"]),
            ReplyReader.of(given),
            chosen_prompts(prompts, chosen_task),
            Quorum(given["quorum"]),
        )

    def isolated_prompts(self, query: str, groups: Sequence[PassageGroup]) -> list[Prompt]:
        """One prompt per group."""
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
