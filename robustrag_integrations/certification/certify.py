"""From a defence and a question to certificates: what `defense.certify` does."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from robustrag_integrations.certification.findings import Findings, Question, certificate
from robustrag_integrations.certification.requests import CertificationReply, CertificationRequest
from robustrag_integrations.certification.result import Certification
from robustrag_integrations.defenses.base import Defense, check_query
from robustrag_integrations.metrics import Metric, contains_answer, metric_name, references_of
from robustrag_integrations.models.base import DecodingModel, TextModel
from robustrag_integrations.passages import Passage
from robustrag_integrations.plans.drivers import arun, run

if TYPE_CHECKING:
    from robustrag_integrations.defenses.decoding.defense import DecodingAggregation, DecodingSettings

CertificationPlan: TypeAlias = Generator[CertificationRequest, CertificationReply, tuple[Findings, ...]]

_HALF = ("bfloat16", "float16")
_ALONE = "the batch shapes of inference"
_PACKED = "many continuations per forward pass; the batch shapes of inference wherever float noise could decide"


@dataclass(frozen=True)
class CertificationRun:
    """A certification that only has to be run."""

    question: Question
    plan: CertificationPlan
    perform: Callable[[CertificationRequest], CertificationReply]
    aperform: Callable[[CertificationRequest], Awaitable[CertificationReply]]
    defense: str
    settings: Mapping[str, Any]
    numerics: Mapping[str, Any]
    warnings: tuple[str, ...]
    profile: Callable[[], Mapping[str, Any]]

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
                warnings=self.warnings,
            )
            for found in findings
        )


def prepare(
    defense: Defense,
    query: str,
    passages: Iterable[str | Passage],
    reference: str | Sequence[str],
    corruption_sizes: Iterable[int],
    *,
    metric: Metric = contains_answer,
    choices: Sequence[str] | None = None,
    **settings: Any,
) -> CertificationRun:
    """Check the input and set the certification up; the settings are those of `Question.of`.

    Raises:
        TypeError, ValueError: bad input, or a model that samples.
    """
    question = _question(defense, query, passages, reference, corruption_sizes, metric, settings)
    return defense.certification_run(question, metric, choices)


@dataclass(frozen=True)
class EtasRun:
    """One walk for several values of eta that only has to be run.

    Attributes:
        walk: gives the certificates of the first eta, ascending, then those of the next.
        etas: the values.
    """

    walk: CertificationRun
    etas: tuple[float, ...]

    def run(self) -> dict[float, tuple[Certification, ...]]:
        """Per eta, one certificate per corruption size, ascending."""
        return self._by_eta(self.walk.run())

    async def arun(self) -> dict[float, tuple[Certification, ...]]:
        """`run` without blocking the event loop."""
        return self._by_eta(await self.walk.arun())

    def _by_eta(self, found: tuple[Certification, ...]) -> dict[float, tuple[Certification, ...]]:
        count = len(self.walk.question.sizes)
        return {eta: found[i * count : (i + 1) * count] for i, eta in enumerate(self.etas)}


def prepare_etas(
    defense: DecodingAggregation,
    query: str,
    passages: Iterable[str | Passage],
    reference: str | Sequence[str],
    *,
    etas: Iterable[float],
    corruption_sizes: Iterable[int],
    metric: Metric = contains_answer,
    **settings: Any,
) -> EtasRun:
    """`prepare` for `DecodingAggregation.certify_etas`."""
    from robustrag_integrations.defenses.decoding.defense import DecodingSettings

    values = tuple(dict.fromkeys(etas))
    if not values:
        raise ValueError("no eta was given; name at least one, such as etas=[0.0, 1.0]")
    question = _question(defense, query, passages, reference, corruption_sizes, metric, settings)
    fixed = [DecodingSettings.of(eta=eta).eta for eta in values]
    return EtasRun(decoding_run(question, defense.settings, defense.model, metric, etas=fixed), values)


def _question(
    defense: Defense,
    query: str,
    passages: Iterable[str | Passage],
    reference: str | Sequence[str],
    corruption_sizes: Iterable[int],
    metric: Metric,
    settings: Mapping[str, Any],
) -> Question:
    check_query(query)
    if not callable(metric):
        raise TypeError(f"metric must be a function of (response, references), got {type(metric).__name__}")
    return Question.of(
        query,
        passages,
        references_of(reference),
        metric_name(metric),
        corruption_sizes,
        group_size=defense.group_size,
        group_by=defense.group_by,
        **settings,
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
    from robustrag_integrations.certification.drive import TextCertifier

    if not model.deterministic:
        raise ValueError(
            "the model samples: another run may answer otherwise, so that no certificate would hold; certify with a "
            "model at temperature 0, declared by samples=False"
        )
    certifier = TextCertifier(model, metric, question.references)
    numerics = _numerics(model)
    return CertificationRun(
        question,
        plan,
        certifier,
        certifier.aperform,
        defense,
        {**settings, "model": model.description},
        numerics,
        (*model.warnings, *_precision_warnings(numerics)),
        certifier.profile,
    )


def decoding_run(
    question: Question,
    settings: DecodingSettings,
    model: DecodingModel,
    metric: Metric,
    *,
    etas: Sequence[int] = (),
) -> CertificationRun:
    """A certification over next-token probabilities; `etas` as for `decoding_certification_plan`."""
    from robustrag_integrations.certification.drive import DecodingCertifier
    from robustrag_integrations.defenses.decoding.certificate import decoding_certification_plan
    from robustrag_integrations.defenses.decoding.token_choice import ONE

    certifier = DecodingCertifier(model, metric, question.references)
    numerics = {**_numerics(model), "slack": settings.slack / ONE}
    named = str(getattr(model, "description", type(model).__name__))
    return CertificationRun(
        question,
        decoding_certification_plan(question, settings, model.codec, metric=metric, etas=etas),
        certifier,
        certifier.aperform,
        "decoding",
        {**settings.as_dict(), "model": named},
        numerics,
        (*model.warnings, *_precision_warnings(numerics)),
        certifier.profile,
    )


def _numerics(model: TextModel | DecodingModel) -> dict[str, Any]:
    known = dict(model.numerics) if isinstance(model, DecodingModel) else {}
    return {**known, "shapes": _ALONE} if known else {}


def _precision_warnings(numerics: Mapping[str, Any]) -> tuple[str, ...]:
    if numerics.get("dtype") not in _HALF:
        return ()
    return (
        f"computed in {numerics['dtype']}: the certificate holds for this device and these batch shapes; elsewhere the "
        "probabilities can differ by more than any useful slack. Use float32 for one that travels",
    )
