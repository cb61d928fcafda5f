"""Secure decoding aggregation: the front door (paper, sections III-C and IV-C)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from robustrag_integrations.answers.determinism import Promise
from robustrag_integrations.certification.certify import CertificationRun
from robustrag_integrations.certification.findings import Question
from robustrag_integrations.certification.metrics import Metric
from robustrag_integrations.defenses.base import Defense
from robustrag_integrations.defenses.decoding.certificate import decoding_run
from robustrag_integrations.defenses.decoding.plan import DecodingSettings, decoding_plan
from robustrag_integrations.models.base import DecodingModel
from robustrag_integrations.plans.asking import PlanInput
from robustrag_integrations.plans.drivers import DecodingPerformer
from robustrag_integrations.plans.finish import Draft
from robustrag_integrations.plans.requests import Steps

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from robustrag_integrations.defenses.options import DecodingOptions


class DecodingAggregation(Defense):
    """Secure decoding aggregation over a model that gives next-token probabilities.

    Guarantee: replacing the content of any `answer.radius` sources leaves the answer as it is, given the probabilities
    of the other sources. Float noise between runs is covered up to `slack`.

    Theorem (`token_choice.py`): r sources take at most D_u(r) from the lead of the most probable token a over u, and
    add r. The token of a step stays if for every u the lead that is left exceeds eta; or if no lead can exceed eta
    on the other side, and the token without retrieval is the one that comes either way. The radius is the smallest of
    all steps, and below the number of answering sources.

    Args:
        model: a `LocalModel`, or another `DecodingModel`.
        task: `short_answer` (default) or `long_form`.
        prompts: your own `PromptSet`; None for the project's.
        options: the settings of the method:

    Examples:
        >>> defense = DecodingAggregation(LocalModel.from_pretrained("my-model"), eta=0.0)
        >>> answer = defense.answer("Who won?", passages)
    """

    settings_type = DecodingSettings
    settings: DecodingSettings
    promise = Promise(
        "the answer of this run",
        "they are added up, and nothing is drawn",
        given="given the probabilities of the other sources",
    )

    def __init__(self, model: DecodingModel, **given: Unpack[DecodingOptions]) -> None:
        super().__init__(**given)
        if not isinstance(model, DecodingModel):
            raise TypeError(
                f"decoding aggregation needs next-token probabilities, which {type(model).__name__} does not give; "
                "use a LocalModel, or KeywordAggregation, which works with any text model"
            )
        self.model = model

    @staticmethod
    def plan_of(inputs: PlanInput, settings: DecodingSettings) -> Steps[Draft]:
        """Return the plan of Algorithm 2."""
        assert isinstance(inputs.model, DecodingModel)  # noqa: S101 - `__init__` and the integrations refuse others
        return decoding_plan(inputs, settings, inputs.model.codec)

    def certification_run(self, question: Question, metric: Metric, choices: Sequence[str] | None) -> CertificationRun:
        """Return the run of Algorithm 4 on this defence's model and settings."""
        return decoding_run(question, self.settings, self.model, metric)

    def _performer(self) -> DecodingPerformer:
        return DecodingPerformer(self.model)
