"""The paper's "no RAG" line: the model alone, with no passage at all."""

from __future__ import annotations

from collections.abc import Sequence

from robustrag_integrations.abstention import is_abstention
from robustrag_integrations.answer import RobustAnswer
from robustrag_integrations.defenses.base import TextDefense
from robustrag_integrations.defenses.vanilla import ask_once
from robustrag_integrations.defenses.voting.options import check_choices
from robustrag_integrations.models.base import TextModel
from robustrag_integrations.passages import PassageGroup
from robustrag_integrations.plans.requests import Plan
from robustrag_integrations.prompts import Task, prompts_for


class NoRetrieval(TextDefense):
    """Ask the model without passages. No attacker reaches it, and it knows nothing new.

    Args:
        model: what is asked.
        task: `short_answer`, `multiple_choice` (then give `choices`) or `long_form`.
    """

    def __init__(self, model: TextModel, *, task: Task = "short_answer") -> None:
        super().__init__(model)
        self.task = task

    def _plan(self, query: str, groups: Sequence[PassageGroup], choices: Sequence[str] | None) -> Plan:
        options = check_choices(choices) if self.task == "multiple_choice" else None
        if options is None:
            self._refuse_choices(choices)
        template = prompts_for(self.task).no_retrieval
        text, choice, _, _ = yield from ask_once(template, {"query": query}, options)
        return RobustAnswer(
            text=text,
            radius=0,
            abstained=is_abstention(text),
            query=query,
            defense="no-rag",
            choice=choice,
            warnings=self.model.warnings,
            model_calls=1,
        )
