"""Consensus aggregation: the front door."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from robustrag_integrations.answers.determinism import Promise
from robustrag_integrations.certification.findings import Asking, Findings, Question
from robustrag_integrations.defenses.agreement.list_certificate import list_certification_plan
from robustrag_integrations.defenses.agreement.lists import ListSettings, list_plan
from robustrag_integrations.defenses.base import TextDefense
from robustrag_integrations.defenses.consensus.certificate import consensus_certification_plan
from robustrag_integrations.defenses.consensus.plan import consensus_plan
from robustrag_integrations.defenses.consensus.settings import ConsensusSettings
from robustrag_integrations.defenses.keyword.certificate import keyword_certification_plan
from robustrag_integrations.defenses.keyword.plan import keyword_plan
from robustrag_integrations.defenses.keyword.settings import KeywordSettings
from robustrag_integrations.defenses.keyword.threshold import Threshold
from robustrag_integrations.plans.asking import PlanInput
from robustrag_integrations.plans.finish import Draft
from robustrag_integrations.plans.requests import Steps


class ConsensusAggregation(TextDefense):
    """Short answers from one round of calls: the whole answer that most sources give, in a source's own words.

    A source's whole answer is one vote, and nothing is cut out of it (`replies/keys.py`). Most votes win. Where answers
    tie, or no two sources agree, there is no answer, and the text tells who says what. Where the model can tell how
    likely a given answer is, a tie goes to the one that more of the other sources find likelier.

    Guarantee: replacing the content of any `answer.radius` groups leaves the same answer up to case, spacing, an
    article and the punctuation at its end, and of any `answer.radius_verbatim` groups the same letters; those of this
    run, if the model samples (`answer.determinism`).

    Theorem (`agreement/plurality.py`): the answer stays if, whatever r groups say, it stays ahead of every other one,
    and of one that nobody has given, and keeps `min_support` votes.

    Args:
        model: the model to ask, once per group.
        task: `short_answer` (default); `list`, counted item by item; `long_form`, the paper's keywords and final call.
        prompts: your own `PromptSet`; None for the project's.
        options: the settings of the method:

    Examples:
        >>> answer = ConsensusAggregation(model).answer("Who won?", passages)
        >>> answer.text, answer.radius
    """

    takes_weights = True
    decides_early = True
    settings_type = ConsensusSettings
    settings: ConsensusSettings | KeywordSettings | ListSettings
    promise = Promise("the answer of this run")

    @classmethod
    def settings_of(cls, **given: Any) -> ConsensusSettings | KeywordSettings | ListSettings:
        """Return the settings of the task: lists are counted item by item, long answers as the paper's keywords."""
        found = ConsensusSettings(**given)
        if found.task == "short_answer":
            return found
        shared = ("task", "prompts", "quorum", "abstention", "cut_replies", "disagreement")
        same: dict[str, Any] = {name: getattr(found, name) for name in shared}
        if found.task == "list":
            return ListSettings(min_support=found.min_support, **same)
        return KeywordSettings(
            other_threshold=Threshold(Fraction(1, 2), None, found.min_support, is_strict=True), **same
        )

    @classmethod
    def takes(cls, settings: object) -> bool:
        """True if these are settings of this method, for short answers, long ones or lists."""
        return isinstance(settings, (ConsensusSettings, KeywordSettings, ListSettings))

    @staticmethod
    def plan_of(inputs: PlanInput, settings: ConsensusSettings | KeywordSettings | ListSettings) -> Steps[Draft]:
        """Return the plan: one round of calls."""
        if isinstance(settings, KeywordSettings):
            return keyword_plan(inputs, settings)
        return list_plan(inputs, settings) if isinstance(settings, ListSettings) else consensus_plan(inputs, settings)

    def certification_plan(self, question: Question, choices: Sequence[str] | None) -> Asking[tuple[Findings, ...]]:
        """Return the plan of the certificate of the task."""
        same_batches = self.model.shares_batches
        if isinstance(self.settings, KeywordSettings):
            return keyword_certification_plan(question, self.settings, same_batches=same_batches)
        if isinstance(self.settings, ListSettings):
            return list_certification_plan(question, self.settings, same_batches=same_batches)
        return consensus_certification_plan(question, self.settings, same_batches=same_batches)
