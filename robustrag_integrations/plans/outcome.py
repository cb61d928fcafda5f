"""The outcome of an answer in numbers, for both the log line (`watch`) and the spans (`spans`). No text."""

from __future__ import annotations

import asyncio
from typing import Any

from robustrag_integrations.answers.answer import RobustAnswer

_CANCELLED = (asyncio.CancelledError, GeneratorExit)  # the caller went away: not a failure


def was_cancelled(kind: type[BaseException]) -> bool:
    """True if the stream was closed or the task cancelled, which is not a failure."""
    return issubclass(kind, _CANCELLED)


def tally(answer: RobustAnswer) -> tuple[int, int]:
    """Return the number of groups that failed, and of those that say something else."""
    states = [group.status for group in answer.groups]
    return states.count("failed"), states.count("differs")


def attributes_of(answer: RobustAnswer) -> dict[str, Any]:
    """Return the attributes of an answer's span."""
    failed, differing = tally(answer)
    return {
        "robustrag.defense": answer.defense,
        "robustrag.groups": len(answer.groups),
        "robustrag.radius": answer.radius,
        "robustrag.abstained": answer.abstained,
        "robustrag.failed": failed,
        "robustrag.differs": differing,
        "robustrag.model_calls": answer.model_calls,
        "robustrag.warnings": len(answer.warnings),
    }
