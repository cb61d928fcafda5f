"""Secure keyword aggregation: the front door (paper, sections III-B and IV-B)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from robustrag_integrations.answers.determinism import Promise
from robustrag_integrations.certification.findings import Asking, Findings, Question
from robustrag_integrations.defenses.base import TextDefense
from robustrag_integrations.defenses.keyword.certificate import keyword_certification_plan
from robustrag_integrations.defenses.keyword.plan import keyword_plan
from robustrag_integrations.defenses.keyword.settings import KeywordSettings
from robustrag_integrations.grouping.votes import VoteRules
from robustrag_integrations.models.base import TextModel
from robustrag_integrations.models.wrappers import TwoModels
from robustrag_integrations.plans.asking import PlanInput
from robustrag_integrations.plans.finish import Draft
from robustrag_integrations.plans.requests import Steps


class KeywordAggregation(TextDefense):
    """Secure keyword aggregation over any text model.

    Guarantee: replacing the content of any `answer.radius` groups leaves the answer as it is if the model is
    deterministic, and the kept keywords of this run if it samples (`answer.determinism`).

    Theorem (`threshold.py`): the answer is a function of the kept keywords. Of the replaced groups each takes away its
    own vote for a kept keyword, and adds one for any other, one that nobody said included; the radius is the largest
    number of groups for which no keyword crosses min(alpha n, beta), however many of them answer.

    Args:
        model: the model to ask, once per group and once with the retained keywords.
        final_model: asked with the retained keywords in its place; the guarantee needs both to be deterministic.
        task: `short_answer` (default), or `long_form`: each group is asked for short phrases, single words do not
            count, and the model is asked to write an answer of those that at least half of the groups carry.
        prompts: your own `PromptSet`; None for the project's. Without a `keyword` prompt in it, the isolated prompt is
            asked at the end, too, with the kept keywords where the passages stood.
        options: the settings of the method:

    Examples:
        >>> defense = KeywordAggregation(CallableModel(my_llm))
        >>> answer = defense.answer("Who won?", passages)
        >>> answer.text, answer.radius
    """

    takes_weights = True
    settings_type = KeywordSettings
    settings: KeywordSettings
    promise = Promise(
        "the keywords that this run kept",
        "the final call is asked with these alone and draws on its own, so that its words may differ by chance, not by "
        "the attacker's choice",
        scope="final_prompt",
    )

    def __init__(self, model: TextModel, *, final_model: TextModel | None = None, **given: Any) -> None:
        super().__init__(model if final_model is None else TwoModels(model, final_model), **given)

    @classmethod
    def settings_under(cls, rules: VoteRules, settings: KeywordSettings) -> KeywordSettings:
        """Return the settings as they are under these rules of voting: with weights a share of all votes."""
        return settings.under(rules)

    @staticmethod
    def plan_of(inputs: PlanInput, settings: KeywordSettings) -> Steps[Draft]:
        """Return the plan of Algorithm 1."""
        return keyword_plan(inputs, settings)

    def certification_plan(self, question: Question, choices: Sequence[str] | None) -> Asking[tuple[Findings, ...]]:
        """Return the plan of Algorithm 3."""
        return keyword_certification_plan(question, self.settings, same_batches=self.model.shares_batches)
