"""Logging and tracing: a log record per answer, and spans and counters where OpenTelemetry's API is installed.

The drivers report to a `Watch`, so that synchronous, asynchronous and streamed answers, LangChain and LlamaIndex are
logged and traced alike. No text of a question, passage, response or error is recorded: only numbers, the names of
settings and the types of errors.
"""

from __future__ import annotations

import logging
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

from robustrag_integrations.answers.answer import RobustAnswer
from robustrag_integrations.errors import was_cancelled
from robustrag_integrations.plans.requests import Ask, OpenSession
from robustrag_integrations.replies.reply import Piece

if TYPE_CHECKING:
    from robustrag_integrations.plans.spans import Spans

ReplyT = TypeVar("ReplyT")
Result = TypeVar("Result")

_LOG = logging.getLogger(__name__)


@cache
def _spans() -> Spans | None:
    """Return the OpenTelemetry recorder, if its API is installed; looked up once per process."""
    try:
        from robustrag_integrations.plans.spans import Spans
    except ImportError:
        return None
    return Spans()


class Watch:
    """One answer or certification under way; entered by a driver before the first step of its plan.

    Args:
        operation: `answer` or `certification`.
    """

    def __init__(self, operation: str) -> None:
        self._operation = operation
        self._spans = _spans()
        self._began = time.perf_counter()
        self._isolated_done = False  # the isolated replies are in, and not yet aggregated

    def __enter__(self) -> Watch:
        self._root = self._spans.begin(self._operation) if self._spans else None
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            what = "cancelled" if was_cancelled(kind) else kind.__name__
            _LOG.info("no %s: %s after %.3f s", self._operation, what, self._seconds)
            if self._spans:
                self._spans.failed(self._root, self._operation, kind)
        if self._spans:
            self._spans.end(self._root)

    def done(self, result: Result) -> Result:
        """Record the plan's result, and return it."""
        if isinstance(result, RobustAnswer):
            _log_answer(result, self._seconds)
            if self._spans:
                self._spans.answered(self._root, result)
        else:
            _LOG.info("%s: done in %.3f s", self._operation, self._seconds)
            if self._spans:
                self._spans.certified(self._root, result)
        return result

    def decide(self, step: Callable[[], Result]) -> Result:
        """Let the plan take a step; the one after the isolated calls is the aggregation."""
        first, self._isolated_done = self._isolated_done, False
        if self._spans is None or not first:
            return step()
        with self._spans.child(self._root, "aggregation"):
            return step()

    def asking(self, request: object) -> AbstractContextManager[Any]:
        """Return the context in which a request is performed: its span, or None where it has none."""
        name = self._named(request)
        return nullcontext() if self._spans is None or name is None else self._spans.child(self._root, name)

    def heard(self, span: Any, request: object, reply: ReplyT) -> ReplyT:
        """Record a reply in the span of its request, and return it."""
        if self._spans is not None and span is not None:
            self._spans.record_replies(span, request, reply)
        return reply

    def pieces(self, final: Iterator[Piece]) -> Iterator[Piece]:
        """Pass on the pieces of a streamed final call."""
        return final if self._spans is None else self._spans.pieces(self._root, final)

    def apieces(self, final: AsyncIterator[Piece]) -> AsyncIterator[Piece]:
        """`pieces` in an event loop."""
        return final if self._spans is None else self._spans.apieces(self._root, final)

    @property
    def _seconds(self) -> float:
        return time.perf_counter() - self._began

    def _named(self, request: object) -> str | None:
        """Return the name of the span around a request; None for requests made once per token."""
        if isinstance(request, (Ask, OpenSession)):
            length = sum(len(p.text) for p in request.prompts)
            role = request.role if isinstance(request, Ask) else "isolated"
            _LOG.debug("asking %d %s prompts of %d characters in all", len(request.prompts), role, length)
            self._isolated_done = role == "isolated" and isinstance(request, Ask)  # decoding aggregates at every token
            return "isolated_calls" if role == "isolated" else "final_call"
        return None


def _log_answer(answer: RobustAnswer, seconds: float) -> None:
    states = [group.status for group in answer.groups]
    failed, differing = states.count("failed"), states.count("differs")
    if failed:
        _LOG.warning("%d of %d groups failed and count as abstentions", failed, len(answer.groups))
    _LOG.info(
        "answer: defense=%s groups=%d radius=%d abstained=%s failed=%d differs=%d model_calls=%d seconds=%.3f",
        answer.defense,
        len(answer.groups),
        answer.radius,
        answer.abstained,
        failed,
        differing,
        answer.model_calls,
        seconds,
    )
