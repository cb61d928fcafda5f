"""The paper's "no RAG" line: the model alone, with no passage at all."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from robustrag_integrations.abstention import is_abstention
from robustrag_integrations.defenses.base import TextDefense, refuse_choices
from robustrag_integrations.defenses.vanilla import VANILLA, VanillaOptions
from robustrag_integrations.defenses.vanilla.defense import VanillaSettings, ask_once
from robustrag_integrations.defenses.voting.options import check_choices
from robustrag_integrations.models.base import TextModel
from robustrag_integrations.plans.asking import PlanInput
from robustrag_integrations.plans.finish import Draft
from robustrag_integrations.plans.requests import Steps
from robustrag_integrations.prompts import Task

if TYPE_CHECKING:
    from typing_extensions import Unpack


class NoRetrieval(TextDefense):
    """The model asked without passages. No attacker reaches it, and it knows nothing new.

    Args:
        model: the model to ask.
        task: `short_answer` (default), `multiple_choice` (then give `choices`) or `long_form`.
        options: the settings of `VanillaRAG`.
    """

    method = replace(VANILLA, name="no-rag")
    isolates = False
    settings_type = VanillaSettings
    settings: VanillaSettings

    def __init__(
        self,
        model: TextModel,
        *,
        task: Task | None = None,
        **options: Unpack[VanillaOptions],
    ) -> None:
        super().__init__(model, task=task, **options)

    @staticmethod
    def plan_of(inputs: PlanInput, settings: VanillaSettings) -> Steps[Draft]:
        """Ask the question alone."""
        options = check_choices(inputs.choices) if settings.task == "multiple_choice" else None
        if options is None:
            refuse_choices(inputs.choices, NoRetrieval)
        template, values = settings.prompts.no_retrieval, {"query": inputs.query}
        text, choice, said = yield from ask_once(template, values, settings.prompts, options, settings.cut_replies)
        answer = inputs.answer(text, abstained=is_abstention(text), choice=choice)
        return Draft(answer, final=said)
