"""A certification that is ready to run: what every method's certificate is put together from."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from robustrag_integrations.certification.drive import TextCertifier
from robustrag_integrations.certification.findings import Findings, Question, certificate
from robustrag_integrations.certification.requests import CertificationReply
from robustrag_integrations.certification.result import Certification
from robustrag_integrations.metrics import Metric
from robustrag_integrations.models.base import DecodingModel, TextModel
from robustrag_integrations.plans.drivers import arun, run

CertificationPlan: TypeAlias = Generator[Any, CertificationReply, tuple[Findings, ...]]

_HALF = ("bfloat16", "float16")
_ALONE = "the batch shapes of inference"
_PACKED = "many continuations per forward pass; the batch shapes of inference wherever float noise could decide"


@dataclass(frozen=True)
class CertificationRun:
    """A certification that only has to be run."""

    question: Question
    plan: CertificationPlan
    perform: Callable[[Any], CertificationReply]
    aperform: Callable[[Any], Awaitable[CertificationReply]]
    defense: str
    settings: Mapping[str, Any]
    numerics: Mapping[str, Any]
    warnings: tuple[str, ...]
    profile: Callable[[], Mapping[str, Any]]
    late_warnings: Callable[[], tuple[str, ...]]

    def run(self) -> tuple[Certification, ...]:
        """One certificate per corruption size, ascending."""
        return self._certificates(run(self.plan, self.perform, operation="certification"))

    async def arun(self) -> tuple[Certification, ...]:
        """`run` without blocking the event loop."""
        return self._certificates(await arun(self.plan, self.aperform, operation="certification"))

    def _certificates(self, findings: Sequence[Findings]) -> tuple[Certification, ...]:
        packed = self.profile()
        numerics = {**self.numerics, **({"shapes": _PACKED, **packed} if packed else {})}
        return tuple(
            certificate(
                self.question,
                found,
                defense=self.defense,
                settings=self.settings,
                numerics=numerics,
                warnings=(*self.warnings, *self.late_warnings()),
            )
            for found in findings
        )


def text_run(
    defense: str,
    question: Question,
    plan: CertificationPlan,
    model: TextModel,
    metric: Metric,
    settings: Mapping[str, Any],
) -> CertificationRun:
    """A certification that needs nothing of the model but text.

    Raises:
        ValueError: the model samples.
    """
    if not model.deterministic:
        raise ValueError(
            "the model samples: another run may answer otherwise, so that no certificate would hold; certify with a "
            "model at temperature 0, declared by samples=False"
        )
    certifier = TextCertifier(model, metric, question.references)
    numerics = numerics_of(model)
    return CertificationRun(
        question,
        plan,
        certifier,
        certifier.aperform,
        defense,
        {**settings, "model": model.description},
        numerics,
        (*model.warnings, *precision_warnings(numerics)),
        certifier.profile,
        certifier.warnings,
    )


def numerics_of(model: TextModel | DecodingModel) -> dict[str, Any]:
    """What the model computes with, for certificates; empty for a model that does not say."""
    known = dict(model.numerics) if isinstance(model, DecodingModel) else {}
    return {**known, "shapes": _ALONE} if known else {}


def precision_warnings(numerics: Mapping[str, Any]) -> tuple[str, ...]:
    """What half precision means for a certificate."""
    if numerics.get("dtype") not in _HALF:
        return ()
    return (
        f"computed in {numerics['dtype']}: the certificate holds for this device and these batch shapes; elsewhere the "
        "probabilities can differ by more than any useful slack. Use float32 for one that travels",
    )
