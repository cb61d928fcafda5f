"""Spans and counters through OpenTelemetry's API (extra `otel`); they go to the SDK that the program has set up."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from opentelemetry import metrics, trace
from opentelemetry.trace import Span, StatusCode

from robustrag_integrations._util.steps import closed_after
from robustrag_integrations.answers.answer import RobustAnswer
from robustrag_integrations.errors import was_cancelled
from robustrag_integrations.models.base import Response
from robustrag_integrations.replies.reply import Piece

_SCOPE = "robustrag_integrations"


class Spans:
    """Records the events of a `Watch` as spans and metrics of OpenTelemetry."""

    def __init__(self) -> None:
        self._tracer = trace.get_tracer(_SCOPE)
        meter = metrics.get_meter(_SCOPE)
        self._answers = meter.create_counter("robustrag.answers", "{answer}", "Answers given, abstentions included")
        self._abstentions = meter.create_counter("robustrag.abstentions", "{answer}", "Answers that abstained")
        self._failures = meter.create_counter("robustrag.failures", "{operation}", "Answers that ended in an error")
        self._failed = meter.create_counter("robustrag.groups.failed", "{group}", "Groups whose call failed")
        self._differing = meter.create_counter(
            "robustrag.groups.differing", "{group}", "Groups that say something else than the answer"
        )
        self._radius = meter.create_histogram("robustrag.radius", "{group}", "Radius of the answers given")

    def begin(self, operation: str) -> Span:
        """Start the span of a whole answer or certification. It is never current: streams pause and resume."""
        return self._tracer.start_span(f"robustrag.{operation}")

    def end(self, root: Span | None) -> None:
        """End the span of an answer or certification."""
        if root is not None:
            root.end()

    def answered(self, root: Span | None, answer: RobustAnswer) -> None:
        """Describe an answer on its span, and count it."""
        states = [group.status for group in answer.groups]
        failed, differing = states.count("failed"), states.count("differs")
        if root is not None and root.is_recording():
            root.set_attributes(
                {
                    "robustrag.defense": answer.defense,
                    "robustrag.groups": len(answer.groups),
                    "robustrag.radius": answer.radius,
                    "robustrag.abstained": answer.abstained,
                    "robustrag.failed": failed,
                    "robustrag.differs": differing,
                    "robustrag.model_calls": answer.model_calls,
                    "robustrag.warnings": len(answer.warnings),
                }
            )
        by = {"robustrag.defense": answer.defense}
        self._answers.add(1, by)
        self._abstentions.add(int(answer.abstained), by)
        self._failed.add(failed, by)
        self._differing.add(differing, by)
        self._radius.record(answer.radius, by)

    def certified(self, root: Span | None, findings: Any) -> None:
        """Describe certificates: the results proven for each corruption size."""
        known = [f for f in findings if hasattr(f, "tau")] if isinstance(findings, Sequence) else []
        if root is not None and known:
            root.set_attribute("robustrag.corruption_sizes", [int(f.size) for f in known])
            root.set_attribute("robustrag.tau", [float(f.tau) for f in known])
            root.set_attribute("robustrag.certified", [bool(f.certified) for f in known])

    def failed(self, root: Span | None, operation: str, error: type[BaseException]) -> None:
        """Record that it ended in an error of this type; its message is untrusted and stays out."""
        if root is not None:
            _mark(root, error)
        if not was_cancelled(error):
            self._failures.add(1, {"robustrag.operation": operation, "error.type": error.__name__})

    @contextmanager
    def child(self, root: Span | None, name: str) -> Iterator[Span]:
        """Span a part of the answer; current while it lasts, so that spans of model clients become its children."""
        if root is not None and not root.get_span_context().is_valid:  # no SDK is set up, and no span is current
            yield root
            return
        with self._tracer.start_as_current_span(
            f"robustrag.{name}", _below(root), record_exception=False, set_status_on_exception=False
        ) as span:
            try:
                yield span
            except BaseException as error:
                _mark(span, type(error))
                raise

    def record_replies(self, span: Span, request: Any, reply: Any) -> None:
        """Record how many replies a request got, and how many of them are failures."""
        span.set_attribute("robustrag.prompts", len(request.prompts))
        if isinstance(reply, Sequence):
            failed = sum(isinstance(r, Response) and r.text is None and r.skipped_reason is None for r in reply)
            span.set_attribute("robustrag.failed", failed)

    def pieces(self, root: Span | None, final: Iterator[Piece]) -> Iterator[Piece]:
        """Pass on a streamed final call's pieces, in a span that is current only while the next one is made."""
        with self._detached(root) as span:
            while True:
                with _current(span):
                    piece = next(final, None)
                if piece is None:
                    return
                yield piece

    async def apieces(self, root: Span | None, final: AsyncIterator[Piece]) -> AsyncIterator[Piece]:
        """`pieces` in an event loop."""
        async with closed_after(final):
            with self._detached(root) as span:
                while True:
                    with _current(span):
                        piece = await anext(final, None)
                    if piece is None:
                        return
                    yield piece

    @contextmanager
    def _detached(self, root: Span | None) -> Iterator[Span]:
        span = self._tracer.start_span("robustrag.final_call", _below(root))
        try:
            yield span
        except BaseException as error:
            _mark(span, type(error))
            raise
        finally:
            span.end()


def _below(root: Span | None) -> Any:
    return None if root is None else trace.set_span_in_context(root)


def _current(span: Span) -> Any:
    return trace.use_span(span, end_on_exit=False, record_exception=False, set_status_on_exception=False)


def _mark(span: Span, error: type[BaseException]) -> None:
    if was_cancelled(error):
        span.set_attribute("robustrag.cancelled", True)
        return
    span.set_attribute("error.type", error.__name__)
    span.set_status(StatusCode.ERROR)
