"""A certification that is ready to run, assembled alike for every method.

1. A method's certification plan yields requests: isolated replies, responses to a final prompt, or rows of a tree.
2. It returns `Findings` per corruption size: the responses that an attacker can cause, and which of them are scored.
3. `CertificationRun` runs it and makes a `Certification` of each: tau is the least score among those responses.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from robustrag_integrations.certification.findings import Asking, ByMetric, Findings, Question
from robustrag_integrations.certification.metrics import GuardedMetric, Metric
from robustrag_integrations.certification.result import Certification
from robustrag_integrations.models.base import Model, TextModel
from robustrag_integrations.plans.drivers import arun, run
from robustrag_integrations.plans.requests import Ask
from robustrag_integrations.text.prompts import Prompt

CertificationPlan: TypeAlias = Asking[tuple[Findings, ...]]

_ALONE = "the batch shapes of inference"


class Certifier:
    """Performs the requests of a certificate that asks a `TextModel` for text; what the metric fails on scores 0."""

    draws = True  # a model that samples has other replies another time

    def __init__(self, model: Any, metric: Metric, references: Sequence[str]) -> None:
        self.model, self.metric, self._references = model, GuardedMetric(metric), tuple(references)

    def scores(self, request: ByMetric) -> list[float]:
        """Return one score per response; a judge that cannot be asked raises."""
        return [self.metric(text, self._references) for text in request.responses]

    def __call__(self, request: Any) -> Any:
        """Perform one request."""
        if isinstance(request, ByMetric):
            return self.scores(request)
        return [r for part in self._parts(request) for r in self.model.generate(part, request.role)]

    async def aperform(self, request: Any) -> Any:
        """Perform one request without blocking the event loop."""
        if isinstance(request, ByMetric):
            return await asyncio.to_thread(self.scores, request)
        return [r for part in self._parts(request) for r in await self.model.agenerate(part, request.role)]

    def _parts(self, request: Ask) -> list[list[Prompt]]:
        """Return the prompts that are asked together: final ones alone where they would share a batch, as inference
        asks one."""
        prompts = list(request.prompts)
        return [[p] for p in prompts] if request.role == "final" and self.model.shares_batches else [prompts]

    def warnings(self) -> list[str]:
        """Weaknesses of the certificate that come from the model and the metric."""
        found = list(self.model.warnings)
        repeats = self.model.repeats
        if repeats.model != "deterministic":
            unknown = "not declared whether the model repeats itself (samples=False declares that it does)"
            found.append(f"{repeats.caveat or unknown}; the certificate is about the replies seen")
        numerics = self.model.numerics
        for dtype in (numerics.get("dtype"), numerics.get("final_model", {}).get("dtype")):
            if dtype in ("bfloat16", "float16"):
                found.append(
                    f"computed in {dtype}: the certificate holds for this device and these batch shapes; elsewhere the "
                    "probabilities can differ by more than any useful slack. Use float32 for one that travels"
                )
                break
        return [*found, *self.metric.warnings()]


@dataclass(frozen=True)
class CertificationRun:
    """A certification that is ready to run; `numerics` are those of the method."""

    question: Question
    plan: CertificationPlan
    certifier: Certifier
    method: str
    settings: Mapping[str, Any]
    numerics: Mapping[str, Any] = field(default_factory=dict)

    def run(self) -> tuple[Certification, ...]:
        """Return one certificate per corruption size, ascending."""
        return self._certificates(run(self.plan, self.certifier, operation="certification"))

    async def arun(self) -> tuple[Certification, ...]:
        """`run` without blocking the event loop."""
        return self._certificates(await arun(self.plan, self.certifier.aperform, operation="certification"))

    def _certificates(self, findings: Sequence[Findings]) -> tuple[Certification, ...]:
        if self.certifier.draws:  # it may turn out to refuse temperature 0 when it is first asked
            refuse_sampling(self.certifier.model)
        numerics = dict(self.certifier.model.numerics)
        numerics |= {"shapes": _ALONE} if numerics else {}
        numerics |= self.numerics
        warnings = self.certifier.warnings()
        return tuple(
            found.certificate(self.question, self.method, self.settings, numerics, warnings) for found in findings
        )


def text_run(
    method: str,
    question: Question,
    plan: CertificationPlan,
    model: TextModel,
    metric: Metric,
    settings: Mapping[str, Any],
) -> CertificationRun:
    """Return a certification that needs only text from the model.

    Raises:
        ValueError: the model samples.
    """
    refuse_sampling(model)
    certifier = Certifier(model, metric, question.references)
    return CertificationRun(question, plan, certifier, method, {**settings, "model": model.description})


def refuse_sampling(model: Model) -> None:
    """Raise ValueError if the model samples."""
    if (repeats := model.repeats).model == "samples":
        raise ValueError(
            f"{repeats.caveat}, so that no certificate would hold; certify with a model at temperature 0, declared by "
            "samples=False. What holds for one that samples: answer.determinism, and expected certified accuracy in "
            "robustrag eval"
        )
