"""A rehearsal: a defence answers a made-up question, so that the first real one finds everything loaded."""

from __future__ import annotations

from collections.abc import Callable
from itertools import cycle, islice

from robustrag_integrations._util.steps import driven
from robustrag_integrations.grouping.passages import PassageGroup, isolate
from robustrag_integrations.models.base import Response
from robustrag_integrations.plans.requests import Ask, Plan, Reply, Request
from robustrag_integrations.plans.watch import Watch

QUESTION = "Who built the old bridge?"
CHOICES = ("Bo Ek", "Ada Vik")
_PASSAGE = (  # long enough to be compared with others
    "the old bridge was built by Bo Ek in 1923. It has carried the road to the harbour ever since, the chronicle says."
)
# An answer, an option, an abstention and reasoning: each is read with patterns and tables of its own.
_REPLIES = ("It was built by Bo Ek in 1923.", "A", "I don't know.", "<think>It says so.</think>Bo Ek")


def made_up_groups(count: int) -> tuple[PassageGroup, ...]:
    """Return passages about the question, each a group of its own."""
    return isolate([f"Source {number}: {_PASSAGE}" for number in range(count)])


def said_by_no_model(request: Request) -> Reply:
    """Return replies without asking a model."""
    if not isinstance(request, Ask):
        return None
    replies = _REPLIES[:1] if request.role == "final" else _REPLIES
    return [Response(reply) for reply in islice(cycle(replies), len(request.prompts))]


def rehearse(plan: Plan, perform: Callable[[Request], Reply]) -> None:
    """Run a plan to its end, without a log record or a span."""
    Watch("rehearsal")  # never entered: this loads OpenTelemetry, where it is installed
    driven(plan, perform)
