"""The settings of long answers and lists that are counted claim by claim."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from robustrag_integrations.defenses.agreement.claims.rule import ClaimRule
from robustrag_integrations.defenses.agreement.reader import ReplyReader
from robustrag_integrations.defenses.registry import Method
from robustrag_integrations.grouping.passages import PassageGroup
from robustrag_integrations.plans.asking import Quorum
from robustrag_integrations.prompts import CLAIM_TASKS, Prompt, PromptSet, Task, chosen_prompts

_OWN = ("min_support", "quorum", "abstention", "cut_replies", "ungrounded")
_IDLE = {"extractor": ("runs",), "final": ("auto", "never"), "replies": ("auto", "text")}  # what changes nothing here


@dataclass(frozen=True)
class ClaimSettings:
    """Everything that decides which claims are kept, apart from the model.

    Attributes:
        rule: the rule for keeping claims.
        reader: a response to its claims.
        task: `long_form` or `list`.
        prompts: the prompts for the model; the isolated one asks for claims.
        quorum: the number of groups that must have been asked with success.
    """

    rule: ClaimRule
    reader: ReplyReader
    task: Task
    prompts: PromptSet
    quorum: Quorum

    @classmethod
    def of(cls, method: Method, task: Task, prompts: PromptSet | None, options: Mapping[str, Any]) -> ClaimSettings:
        """Build the settings from user arguments.

        Args:
            method: the entry that the arguments are of.
            task: `long_form` or `list`.
            prompts: the user's; None for the project's.
            options: settings of the method; None for a default. Those that mean nothing here must be left out.

        Raises:
            ValueError, TypeError: an invalid argument; the message names it and the fix.
        """
        method.check_names(options)
        idle = {n: v for n, v in options.items() if v is not None and n not in _OWN and v not in _IDLE.get(n, ())}
        if idle:
            named = ", ".join(f"{name}={value!r}" for name, value in idle.items())
            paper = "; the paper's long form is KeywordAggregation(extractor='spacy')" if task == "long_form" else ""
            raise ValueError(
                f"{named[:200]} does nothing with task={task!r}, which counts claims by min_support; leave it out"
                f"{paper}"
            )
        own = {name: method.default(name) if options.get(name) is None else options[name] for name in _OWN}
        given = {**method.checked(own), "extractor": "runs", "replies": "text"}
        chosen = chosen_prompts(prompts, task)
        return cls(
            ClaimRule(given["min_support"]),
            replace(ReplyReader.of(given), task=task),
            task,
            replace(chosen, isolated=chosen.claims or chosen.isolated, claims=None, phrases=None, keyword=None),
            Quorum(given["quorum"]),
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
            "ungrounded": read["ungrounded"],
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
