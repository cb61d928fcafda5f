"""A certification that is ready to run, assembled alike for every method.

1. A method's certification plan yields requests: isolated replies, responses to a final prompt, or rows of a tree.
2. It returns `Findings` per corruption size: the responses that an attacker can cause, and which of them are scored.
3. `CertificationRun` runs it and makes a `Certification` of each: tau is the least score among those responses.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, TypeAlias

from robustrag_integrations.certification.findings import (
    Asking,
    ByMetric,
    CertificationReply,
    Findings,
    Question,
    certificate,
    smaller_size_fails,
)
from robustrag_integrations.certification.result import Certification
from robustrag_integrations.metrics import GuardedMetric, Metric
from robustrag_integrations.models.base import DecodingModel, FinalAnswers, TextModel, repeats_of
from robustrag_integrations.plans.drivers import arun, run
from robustrag_integrations.plans.requests import Ask

CertificationPlan: TypeAlias = Asking[tuple[Findings, ...]]

_HALF = ("bfloat16", "float16")
_ALONE = "the batch shapes of inference"
_PACKED = "many continuations per forward pass; the batch shapes of inference wherever float noise could decide"


class Certifier(ABC):
    """Performs the requests of a certificate; a response that the metric fails on scores 0.

    Attributes:
        metric: the metric, and what went wrong in it.
    """

    def __init__(self, metric: Metric, references: Sequence[str]) -> None:
        self.metric, self._references = GuardedMetric(metric), tuple(references)

    def scores(self, responses: Sequence[str]) -> list[float]:
        """Return one score per response.

        Raises:
            RobustRAGError: a judge could not be asked.
        """
        return [self.metric(text, self._references) for text in responses]

    @abstractmethod
    def __call__(self, request: object) -> CertificationReply:
        """Perform one request."""

    @abstractmethod
    async def aperform(self, request: object) -> CertificationReply:
        """Perform one request without blocking the event loop."""

    @abstractmethod
    def profile(self) -> dict[str, Any]:
        """Counts of what was computed, by how; JSON-safe."""


@dataclass(frozen=True)
class CertificationRun:
    """A certification that is ready to run."""

    question: Question
    plan: CertificationPlan
    certifier: Certifier
    defense: str
    settings: Mapping[str, Any]
    numerics: Callable[[], Mapping[str, Any]]
    warnings: tuple[str, ...]
    check: Callable[[], object] = tuple

    def run(self) -> tuple[Certification, ...]:
        """Return one certificate per corruption size, ascending."""
        return self._certificates(run(self.plan, self.certifier, operation="certification"))

    async def arun(self) -> tuple[Certification, ...]:
        """`run` without blocking the event loop."""
        return self._certificates(await arun(self.plan, self.certifier.aperform, operation="certification"))

    def _certificates(self, findings: Sequence[Findings]) -> tuple[Certification, ...]:
        self.check()
        packed = self.certifier.profile()
        numerics = {**self.numerics(), **({"shapes": _PACKED, **packed} if packed else {})}
        made = (
            certificate(
                self.question,
                found,
                defense=self.defense,
                settings=self.settings,
                numerics=numerics,
                warnings=(*self.warnings, *self.certifier.metric.warnings()),
            )
            for found in findings
        )
        return tuple(_undecided_where_the_metric_failed(made, self.certifier.metric.failures))


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
    certifier = TextCertifier(model, metric, question.references)
    numerics = partial(numerics_of, model)
    return CertificationRun(
        question,
        plan,
        certifier,
        defense,
        {**settings, "model": model.description},
        numerics,
        (*model.warnings, *doubts, *precision_warnings(numerics())),
        partial(refuse_sampling, model),  # a model may turn out to refuse temperature 0 when it is first asked
    )


class TextCertifier(Certifier):
    """A performer of the requests of a certificate that asks a `TextModel` for text.

    Args:
        model: the model to ask.
        metric: scores the responses.
        references: the right answers.
    """

    def __init__(self, model: TextModel, metric: Metric, references: Sequence[str]) -> None:
        super().__init__(metric, references)
        self._model = model

    @cached_property
    def _finals(self) -> FinalAnswers:
        """The answers to final prompts; not every method has some."""
        return self._model.finals()

    def __call__(self, request: object) -> CertificationReply:
        """Perform one request."""
        if isinstance(request, ByMetric):
            return self.scores(request.responses)
        ask = _checked(request)
        prompts = list(ask.prompts)
        return self._finals.answer(prompts) if ask.role == "final" else self._model.generate(prompts, ask.role)

    async def aperform(self, request: object) -> CertificationReply:
        """Perform one request without blocking the event loop."""
        if isinstance(request, ByMetric):
            return await asyncio.to_thread(self.scores, request.responses)
        ask = _checked(request)
        prompts = list(ask.prompts)
        return await (
            self._finals.aanswer(prompts) if ask.role == "final" else self._model.agenerate(prompts, ask.role)
        )

    def profile(self) -> dict[str, Any]:
        """Counts of the final answers, by how they were computed; JSON-safe."""
        return self._finals.profile


def _checked(request: object) -> Ask:
    if not isinstance(request, Ask):
        raise TypeError(f"a text model cannot perform {type(request).__name__}")
    return request


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
