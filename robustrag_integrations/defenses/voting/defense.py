"""Majority voting: the front door (paper, section III-B on short answers with predefined options)."""

from __future__ import annotations

from collections.abc import Sequence

from robustrag_integrations.answers.determinism import Promise
from robustrag_integrations.certification.certify import CertificationRun, text_run
from robustrag_integrations.certification.findings import Question
from robustrag_integrations.defenses.base import TextDefense
from robustrag_integrations.defenses.voting.certificate import voting_certification_plan
from robustrag_integrations.defenses.voting.options import check_choices
from robustrag_integrations.defenses.voting.plan import voting_plan
from robustrag_integrations.defenses.voting.settings import VotingSettings
from robustrag_integrations.metrics import Metric
from robustrag_integrations.plans.asking import PlanInput
from robustrag_integrations.plans.finish import Draft
from robustrag_integrations.plans.requests import Steps


class MajorityVoting(TextDefense):
    """Majority voting over the options of a multiple-choice question.

    Guarantee: replacing the content of any `answer.radius` groups leaves the winning option as it is; that of this
    run, if the model samples (`answer.determinism`).

    Theorem (`agreement/plurality.py`): with c(u) votes for option u, r replaced groups leave the winner x if, for every
    other u, c(x) - c(u) > 2r.

    Options with equally many votes are no answer: the text tells who says what.

    Args:
        model: the model to ask, once per group.
        task: `multiple_choice`, the only one.
        prompts: your own `PromptSet`; None for the project's.
        accept_sampling: you know that the model may answer otherwise another time: no warning repeats it, while
            `answer.determinism` still says what holds.
        settings: a settings file, or what `load_settings` gives, for everything that is not given here.
        rules: the rules of voting: `group_by`, `group_size`, `copies`, `weights`, `min_groups`,
            `min_radius`, `below`; and whether all are waited for: `stop_when_decided`, `wave_size`; see `VoteRules`.
        options: the settings of the method:

    Examples:
        >>> answer = MajorityVoting(model).answer("Capital of France?", passages, choices=["Lyon", "Paris"])
        >>> answer.text, answer.choice, answer.radius
    """

    takes_weights = True
    decides_early = True
    settings_type = VotingSettings
    settings: VotingSettings
    promise = Promise("the option that won this run")

    @staticmethod
    def plan_of(inputs: PlanInput, settings: VotingSettings) -> Steps[Draft]:
        """Return the plan: one vote per group."""
        return voting_plan(inputs, check_choices(inputs.choices), settings)

    def certification_run(self, question: Question, metric: Metric, choices: Sequence[str] | None) -> CertificationRun:
        """Return the run that finds the vote's possible winners on this defence's model and settings."""
        options = check_choices(choices)
        plan = voting_certification_plan(question, options, self.settings, same_batches=self.model.shares_batches)
        return text_run("voting", question, plan, self.model, metric, self.settings.as_dict())
