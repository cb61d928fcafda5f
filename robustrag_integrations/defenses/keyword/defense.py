"""Secure keyword aggregation: the front door (paper, sections III-B and IV-B)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from robustrag_integrations.answers.determinism import Promise
from robustrag_integrations.certification.certify import CertificationRun, text_run
from robustrag_integrations.certification.findings import Question
from robustrag_integrations.defenses.agreement.claims.certificate import claims_certification_plan
from robustrag_integrations.defenses.agreement.claims.plan import claims_plan
from robustrag_integrations.defenses.agreement.claims.settings import ClaimSettings
from robustrag_integrations.defenses.base import PlanInput, TextDefense, refuse_choices
from robustrag_integrations.defenses.keyword import KEYWORD
from robustrag_integrations.defenses.keyword.certificate import keyword_certification_plan
from robustrag_integrations.defenses.keyword.plan import keyword_plan
from robustrag_integrations.defenses.keyword.settings import KeywordSettings
from robustrag_integrations.metrics import Metric
from robustrag_integrations.models.base import TextModel
from robustrag_integrations.models.wrappers import TwoModels
from robustrag_integrations.plans.requests import Plan

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from robustrag_integrations.defenses.base import DefenseArguments
    from robustrag_integrations.defenses.keyword import KeywordOptions
    from robustrag_integrations.grouping.votes import VoteRules

    class KeywordArguments(KeywordOptions, DefenseArguments, total=False):
        """The keyword arguments of `KeywordAggregation` besides the models."""


class KeywordAggregation(TextDefense):
    """Secure keyword aggregation over any text model.

    Guarantee: replacing the content of any `answer.radius` groups leaves the answer as it is if the model is
    deterministic, and the kept keywords of this run if it samples (`answer.determinism`). Where the model is asked at
    the end, the radius counts the letters that it is shown (`evidence["retained"]`).

    Theorem (`absolute.py`): c(w) of n answering groups say w, which is kept if c(w) >= mu(n). Of r replaced groups z
    abstained before. A kept w stays if c(w) - s >= mu(n + z), where s of the replaced groups said it; another one
    stays away if c(w) + t + z < mu(n + z), where t answered without it. The radius is the largest r for which this
    holds of every word, one that nobody said (c = 0) included. Under a relative threshold (`relative_radius.py`) mu
    follows the strongest keyword, and every pair of keywords is compared.

    Args:
        model: the model to ask, once per group and once with the retained keywords.
        final_model: asked with the retained keywords in its place; the guarantee needs both to be deterministic.
        task: `short_answer` (default); `long_form` and `list` are counted claim by claim (`agreement/claims/rule.py`),
            without a final call, and take `min_support`, `quorum`, `abstention`, `cut_replies` and prompts alone. With
            an extractor `long_form` is the paper's: each group is asked for short phrases, and single words do not
            count.
        prompts: your own `PromptSet`; None for the project's. Without a `keyword` prompt in it, the isolated prompt is
            asked at the end, too, with the retained keywords where the passages stood.
        accept_sampling: you know that the model may answer otherwise another time: no warning repeats it, while
            `answer.determinism` still says what holds.
        settings: a settings file, or what `load_settings` gives, for everything that is not given here.
        rules: the rules of voting: `group_by`, `group_size`, `copies`, `weights`, `min_groups`,
            `min_radius`, `below`; see `VoteRules`.
        options: the settings of the method:

    Examples:
        >>> defense = KeywordAggregation(CallableModel(my_llm))
        >>> answer = defense.answer("Who won?", passages)
        >>> answer.text, answer.radius
    """

    method = KEYWORD
    takes_weights = True
    settings_type = KeywordSettings
    settings: KeywordSettings | ClaimSettings
    promise = Promise(
        "the keywords that this run kept",
        "the final call is asked with these alone and draws on its own, so that its words may differ by chance, not by "
        "the attacker's choice",
        scope="final_prompt",
    )

    def __init__(
        self, model: TextModel, *, final_model: TextModel | None = None, **given: Unpack[KeywordArguments]
    ) -> None:
        super().__init__(model if final_model is None else TwoModels(model, final_model), **given)

    @classmethod
    def takes(cls, settings: object) -> bool:
        """True if these are settings of this method, for keywords or for claims."""
        return isinstance(settings, (KeywordSettings, ClaimSettings))

    @classmethod
    def settings_under(
        cls, rules: VoteRules, settings: KeywordSettings | ClaimSettings
    ) -> KeywordSettings | ClaimSettings:
        """Return the settings as they are under these rules of voting: with weights a relative threshold."""
        return settings.under(rules) if isinstance(settings, KeywordSettings) else settings

    @staticmethod
    def plan_of(inputs: PlanInput, settings: KeywordSettings | ClaimSettings) -> Plan:
        """Return the plan of Algorithm 1."""
        refuse_choices(inputs.choices, KeywordAggregation)
        if isinstance(settings, ClaimSettings):
            return claims_plan(
                inputs.query,
                inputs.groups,
                settings,
                defense="keyword",
                rules=inputs.rules,
                model_warnings=inputs.caveats,
            )
        return keyword_plan(
            inputs.query, inputs.groups, settings, group_by=inputs.group_by, model_warnings=inputs.caveats
        )

    def certification_run(self, question: Question, metric: Metric, choices: Sequence[str] | None) -> CertificationRun:
        """Return the run of Algorithm 3 on this defence's model and settings."""
        refuse_choices(choices, KeywordAggregation)
        same_batches = self.model.shares_batches
        if isinstance(self.settings, ClaimSettings):
            plan = claims_certification_plan(question, self.settings, same_batches=same_batches)
        else:
            plan = keyword_certification_plan(question, self.settings, same_batches=same_batches)
        return text_run("keyword", question, plan, self.model, metric, self.settings.as_dict())
