"""A certification that is ready to run, assembled alike for every method.

1. A method's certification plan yields requests: isolated replies, responses to a final prompt, or rows of a tree.
2. It returns `Findings` per corruption size: the responses that an attacker can cause, and which of them are scored.
3. `CertificationRun` runs it and makes a `Certification` of each: tau is the least score among those responses.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeAlias

from robustrag_integrations.certification.drive import TextCertifier
from robustrag_integrations.certification.findings import Findings, Question, certificate, smaller_size_fails
from robustrag_integrations.certification.requests import CertificationReply
from robustrag_integrations.certification.result import Certification
from robustrag_integrations.metrics import GuardedMetric, Metric
from robustrag_integrations.models.base import DecodingModel, TextModel, repeats_of
from robustrag_integrations.plans.drivers import arun, run

CertificationPlan: TypeAlias = Generator[Any, CertificationReply, tuple[Findings, ...]]

_HALF = ("bfloat16", "float16")
_ALONE = "the batch shapes of inference"
_PACKED = "many continuations per forward pass; the batch shapes of inference wherever float noise could decide"


@dataclass(frozen=True)
class CertificationRun:
    """A certification that is ready to run."""

    question: Question
    plan: CertificationPlan
    perform: Callable[[Any], CertificationReply]
    aperform: Callable[[Any], Awaitable[CertificationReply]]
    defense: str
    settings: Mapping[str, Any]
    numerics: Callable[[], Mapping[str, Any]]
    warnings: tuple[str, ...]
    profile: Callable[[], Mapping[str, Any]]
    metric: GuardedMetric
    check: Callable[[], object] = tuple

    def run(self) -> tuple[Certification, ...]:
        """Return one certificate per corruption size, ascending."""
        return self._certificates(run(self.plan, self.perform, operation="certification"))

    async def arun(self) -> tuple[Certification, ...]:
        """`run` without blocking the event loop."""
        return self._certificates(await arun(self.plan, self.aperform, operation="certification"))

    def _certificates(self, findings: Sequence[Findings]) -> tuple[Certification, ...]:
        self.check()
        packed = self.profile()
        numerics = {**self.numerics(), **({"shapes": _PACKED, **packed} if packed else {})}
        made = (
            certificate(
                self.question,
                found,
                defense=self.defense,
                settings=self.settings,
                numerics=numerics,
                warnings=(*self.warnings, *self.metric.warnings()),
            )
            for found in findings
        )
        return tuple(_undecided_where_the_metric_failed(made, self.metric.failures))


def text_run(
    defense: str,
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
    doubts = repeat_warnings(model)
    certifier = TextCertifier(model, metric, question.references, question.kept)
    numerics = partial(numerics_of, model)
    return CertificationRun(
        question,
        plan,
        certifier,
        certifier.aperform,
        defense,
        {**settings, "model": model.description},
        numerics,
        (*model.warnings, *doubts, *precision_warnings(numerics())),
        certifier.profile,
        certifier.metric,
        partial(refuse_sampling, model),  # a model may turn out to refuse temperature 0 when it is first asked
    )


def numerics_of(model: TextModel | DecodingModel) -> dict[str, Any]:
    """Return the model's numerics, for certificates; empty for a model that does not say."""
    known = dict(model.numerics)
    return {**known, "shapes": _ALONE} if known else {}


def repeat_warnings(model: TextModel | DecodingModel) -> tuple[str, ...]:
    """Warn of a certificate by a model that may not be deterministic."""
    repeats = repeats_of(model)
    if repeats.model == "deterministic":
        return ()
    doubt = repeats.caveat or "not declared whether the model repeats itself (samples=False declares that it does)"
    return (f"{doubt}; the certificate is about the replies seen",)


def refuse_sampling(model: TextModel) -> None:
    """Raise ValueError if the model samples."""
    if (repeats := repeats_of(model)).model == "samples":
        raise ValueError(
            f"{repeats.caveat}, so that no certificate would hold; certify with a model at temperature 0, declared by "
            "samples=False. What holds for one that samples: answer.determinism, and expected certified accuracy in "
            "robustrag eval"
        )


def precision_warnings(numerics: Mapping[str, Any]) -> tuple[str, ...]:
    """Warn of a certificate that was computed in half precision."""
    used = [part.get("dtype") for part in (numerics, numerics.get("final_model", {}))]
    half = [dtype for dtype in used if dtype in _HALF]
    if not half:
        return ()
    return (
        f"computed in {half[0]}: the certificate holds for this device and these batch shapes; elsewhere the "
        "probabilities can differ by more than any useful slack. Use float32 for one that travels",
    )


def _undecided_where_the_metric_failed(
    made: Iterable[Certification], failures: Mapping[str, str]
) -> Iterator[Certification]:
    """The certificates; undecided are those whose tau is 0 only because the metric failed on a possible response.

    A response that the metric failed on counts as 0, so that tau is 0 there already, and at every larger size.

    Args:
        made: the certificates, by ascending size.
        failures: the errors, by response (`GuardedMetric.failures`).
    """
    why = settled = ""
    for found in made:
        failed = any(r.text in failures for r in found.responses)
        refuted = found.unbounded or any(r.score == 0 and r.text not in failures for r in found.responses)
        if failed and not refuted:
            why = f"the metric {found.metric} failed on a possible response, which counts as 0; no attack is known"
            settled = smaller_size_fails(found.corruption_size)
        elif not why or found.stopped != settled:
            why = ""
            yield found
            continue
        yield replace(found, tau=0.0, certified=False, stopped=why)
