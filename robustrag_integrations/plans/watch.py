"""Logging and tracing: a log record per answer, and spans where OpenTelemetry's API is installed (extra `otel`).

The drivers report to a `Watch`, so that synchronous, asynchronous and streamed answers, LangChain and LlamaIndex are
logged and traced alike. No text of a question, passage, response or error is recorded: only numbers, the names of
settings and the types of errors.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, TypeVar

from robustrag_integrations.answers.answer import RobustAnswer
from robustrag_integrations.errors import was_cancelled
from robustrag_integrations.plans.requests import Ask, OpenSession

Result = TypeVar("Result")

_LOG = logging.getLogger(__name__)


class Watch:
    """An `answer` or a `certification` under way; entered by a driver before the first step of its plan."""

    def __init__(self, operation: str) -> None:
        self._operation, self._began = operation, time.perf_counter()
        self._root: Any = None

    def __enter__(self) -> Watch:
        self._root = _started(self._operation)  # never current: streams pause and resume
        return self

    def __exit__(self, kind: type[BaseException] | None, *raised: object) -> None:
        if kind is not None:
            what = "cancelled" if was_cancelled(kind) else kind.__name__
            _LOG.info("no %s: %s after %.3f s", self._operation, what, time.perf_counter() - self._began)
        _end(self._root, kind)

    def done(self, result: Result) -> Result:
        """Record the plan's result, and return it."""
        seconds = time.perf_counter() - self._began
        if not isinstance(result, RobustAnswer):
            _LOG.info("%s: done in %.3f s", self._operation, seconds)
            return result
        states = [group.status for group in result.groups]
        said = {
            "defense": result.defense,
            "groups": len(states),
            "radius": result.radius,
            "abstained": result.abstained,
            "failed": states.count("failed"),
            "differs": states.count("differs"),
            "model_calls": result.model_calls,
        }
        if said["failed"]:
            _LOG.warning("%d of %d groups failed and count as abstentions", said["failed"], len(states))
        _LOG.info("answer: %s seconds=%.3f", " ".join(f"{name}={value}" for name, value in said.items()), seconds)
        if self._root is not None:
            self._root.set_attributes({f"robustrag.{name}": value for name, value in said.items()})
        return result

    @contextmanager
    def calls(self, request: object, *, streamed: bool = False) -> Iterator[None]:
        """Trace the model's calls for a request, but for those made once per token.

        The span is current, so that those of the model's client are below it. Of a streamed call it is not: between two
        pieces the program does other things.
        """
        if not isinstance(request, (Ask, OpenSession)):
            yield
            return
        role = request.role if isinstance(request, Ask) else "isolated"
        length = sum(len(prompt.text) for prompt in request.prompts)
        _LOG.debug("asking %d %s prompts of %d characters in all", len(request.prompts), role, length)
        span = _started("final_call" if role == "final" else "isolated_calls", self._root)
        kind: type[BaseException] | None = None
        try:
            if span is None or streamed:
                yield
            else:
                with _api().use_span(span, record_exception=False, set_status_on_exception=False):
                    yield
        except BaseException as error:
            kind = type(error)
            raise
        finally:
            _end(span, kind)


@cache
def _api() -> Any:
    """Return OpenTelemetry's API; None where it is not installed."""
    try:
        from opentelemetry import trace
    except ImportError:
        return None
    return trace


def _started(name: str, above: Any = None) -> Any:
    """Start a span; None without OpenTelemetry."""
    trace = _api()
    if trace is None:
        return None
    below = None if above is None else trace.set_span_in_context(above)
    return trace.get_tracer("robustrag_integrations").start_span(f"robustrag.{name}", below)


def _end(span: Any, kind: type[BaseException] | None) -> None:
    """End a span, with the type of the error that ended it; its message is untrusted and stays out."""
    if span is None:
        return
    if kind is not None and was_cancelled(kind):
        span.set_attribute("robustrag.cancelled", True)
    elif kind is not None:
        span.set_attribute("error.type", kind.__name__)
        span.set_status(_api().StatusCode.ERROR)
    span.end()
