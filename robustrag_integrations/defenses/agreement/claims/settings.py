"""The settings of long answers and lists that are counted claim by claim."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from robustrag_integrations.defenses.agreement.claims.rule import ClaimRule
from robustrag_integrations.defenses.agreement.numbers import support_of
from robustrag_integrations.defenses.agreement.reader import ReplyReader
from robustrag_integrations.grouping.passages import PassageGroup
from robustrag_integrations.plans.asking import Quorum
from robustrag_integrations.prompts import CLAIM_TASKS, Prompt, PromptSet, Task, chosen_prompts
from robustrag_integrations.replies.reading import CutReplies


@dataclass(frozen=True)
class ClaimSettings:
    """Everything that decides which claims are kept, apart from the model.

    Attributes:
        rule: which claims are kept.
        reader: a response to its claims.
        task: `long_form` or `list`.
        prompts: the prompts for the model; the isolated one asks for claims.
        quorum: how many groups must have been asked with success.
    """

    rule: ClaimRule
    reader: ReplyReader
    task: Task
    prompts: PromptSet
    quorum: Quorum

    @classmethod
    def of(
        cls,
        task: Task,
        *,
        min_support: int,
        prompts: PromptSet | None,
        quorum: float,
        abstention: Callable[[str], bool] | Sequence[str] | None,
        cut_replies: CutReplies,
        others: Mapping[str, Any],
    ) -> ClaimSettings:
        """Build the settings from user arguments.

        Args:
            task: `long_form` or `list`.
            others: settings of the method that mean nothing here, by their names: each must be None.

        Raises:
            ValueError, TypeError: an invalid argument; the message names it and the fix.
        """
        if idle := [f"{name}={value!r}" for name, value in others.items() if value is not None]:
            paper = "; the paper's long form is KeywordAggregation(extractor='spacy')" if task == "long_form" else ""
            raise ValueError(
                f"{', '.join(idle)[:200]} does nothing with task={task!r}, which counts claims by min_support; leave "
                f"it out{paper}"
            )
        chosen = chosen_prompts(prompts, task)
        return cls(
            ClaimRule(support_of(min_support)),
            replace(ReplyReader.of("runs", 1, abstention, cut_replies, "text"), task=task),
            task,
            replace(chosen, isolated=chosen.claims or chosen.isolated, claims=None, phrases=None, keyword=None),
            Quorum(quorum),
        )

    def isolated_prompts(self, query: str, groups: Sequence[PassageGroup]) -> list[Prompt]:
        """One prompt per group."""
        return [self.prompts.isolated.render(context=g.text, query=query) for g in groups]

    def as_dict(self) -> dict[str, Any]:
        """The settings, JSON-safe, as answers and certificates name them."""
        read = self.reader.as_dict()
        return {
            "min_support": self.rule.min_support,
            "task": self.task,
            "quorum": self.quorum.share,
            "abstention": read["abstention"],
            "cut_replies": read["cut_replies"],
        }


def counts_claims(task: Task, extractor: object) -> bool:
    """True if claims are counted: for lists, and for long answers unless an extractor of keywords is given.

    Raises:
        ValueError: an extractor for a list.
    """
    if task not in CLAIM_TASKS:
        return False
    if extractor in (None, "runs"):
        return True
    if task == "list":
        raise ValueError("task='list' counts the items of lists, which no extractor finds; leave extractor= out")
    return False
