"""The settings of consensus aggregation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from robustrag_integrations.defenses.agreement.lists import ListSettings
from robustrag_integrations.defenses.agreement.plurality import Rule
from robustrag_integrations.defenses.agreement.rules import ONE_IN, Disagreement
from robustrag_integrations.defenses.consensus import CONSENSUS, ConsensusOptions
from robustrag_integrations.defenses.consensus.reading import AnswerReader
from robustrag_integrations.defenses.keyword.settings import KeywordSettings
from robustrag_integrations.grouping.passages import PassageGroup
from robustrag_integrations.languages.questions import asks_yes_or_no
from robustrag_integrations.models.base import SCORE_NOISE
from robustrag_integrations.plans.asking import Quorum
from robustrag_integrations.prompts import AGREED_CONTEXT, Prompt, PromptSet, PromptTemplate, Task, chosen_prompts

if TYPE_CHECKING:
    from typing_extensions import Unpack

_OBJECT = PromptTemplate("", AGREED_CONTEXT + "\n\nQuestion: {query}\nAnswer:", ("agreed", "query"))


@dataclass(frozen=True)
class ConsensusSettings:
    """Everything that decides a consensus apart from the model.

    Attributes:
        rule: the rule that chooses the answer.
        reader: a response to what it says.
        prompts: the prompts for the model.
        quorum: number of groups that must have been asked with success.
        disagreement: the text where there is no answer.
        runoff: True if a tie may be settled by how likely the other groups find the tied answers.
        words: True if the user's prompt words the agreed answer.
        objects: True if the final call puts the agreed answer into an object, or into the format of a parser; what does
            not hold it is an abstention.
    """

    rule: Rule
    reader: AnswerReader
    prompts: PromptSet
    quorum: Quorum
    disagreement: Disagreement = "tell"
    runoff: bool = True
    words: bool = True
    objects: bool = False

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
        shared = {name: given[name] for name in ("quorum", "abstention", "cut_replies", "disagreement")}
        if chosen_task == "list":
            return ListSettings.of(given["min_support"], prompts, shared)
        if chosen_task == "long_form":
            return KeywordSettings.of_majority(given["min_support"], prompts, **shared)
        return cls(
            Rule(given["min_support"], ONE_IN[given["agreement"]], SCORE_NOISE),
            AnswerReader.of(given),
            chosen_prompts(prompts, chosen_task),
            Quorum(given["quorum"]),
            given["disagreement"],
            given["runoff"] == "auto",
            given["wording"] == "model",
        )

    def isolated_prompts(self, query: str, groups: Sequence[PassageGroup]) -> list[Prompt]:
        """One prompt per group; a question of yes or no is asked as a choice."""
        choice = self.prompts.choice if asks_yes_or_no(query) else None
        isolated = choice or self.prompts.isolated
        return [isolated.render(context=g.text, query=query) for g in groups]

    def wording_prompt(self, query: str, agreed: str) -> Prompt | None:
        """The prompt that words an agreed answer; None for one that is shown as it is: a yes, a no, and code.

        Into an object every answer is put.
        """
        if self.objects:
            return (self.prompts.wording or _OBJECT).render(agreed=agreed, query=query)
        if not self.words or self.prompts.wording is None or asks_yes_or_no(query) or "`" in agreed:
            return None
        return self.prompts.wording.render(agreed=agreed, query=query)

    def as_dict(self) -> dict[str, Any]:
        """The settings, JSON-safe, as answers and certificates name them."""
        return {
            "task": "short_answer",
            "min_support": self.rule.min_support,
            "agreement": next(name for name, one_in in ONE_IN.items() if one_in == self.rule.one_in),
            "quorum": self.quorum.share,
            "disagreement": self.disagreement,
            "runoff": "auto" if self.runoff else "never",
            "wording": "model" if self.objects or (self.words and self.prompts.wording is not None) else "source",
            **self.reader.as_dict(),
        }
