"""Puts the robust answer into LlamaIndex's own metadata, and to whatever its engines carry a response in."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from llama_index.core import instrumentation
from llama_index.core.base.response.schema import PydanticResponse
from llama_index.core.bridge.pydantic import BaseModel, PrivateAttr, ValidationError
from llama_index.core.instrumentation.events import BaseEvent
from llama_index.core.schema import BaseNode, NodeWithScore

from robustrag_integrations._util.display import printable
from robustrag_integrations._util.errors import ModelError
from robustrag_integrations.answers.abstained import Abstained
from robustrag_integrations.answers.answer import SCHEMA, RobustAnswer

_dispatcher = instrumentation.get_dispatcher(__name__)  # type: ignore[attr-defined]
REPORT = "robustrag"
_DEEPEST = 12  # responses within responses
_CARRIERS = (
    *("metadata", "response", "response_gen", "raw_output", "tool_output", "tool_calls", "sources", "source_nodes"),
    "robustness",
)


PENDING = {"schema": SCHEMA, "pending": True}
"""What a report says until its answer is there."""


class ReportedNode(NodeWithScore):
    """A source node of a robust answer: the retrieved node itself, with a reference to the report.

    Engines that ask others (sub-questions, routers, steps) keep the source nodes and drop the rest of the responses.
    """

    _report: Any = PrivateAttr(default=None)

    @classmethod
    def of(cls, found: NodeWithScore, report: dict[str, Any]) -> ReportedNode:
        """Wrap a node of an answer."""
        made = cls(node=found.node, score=found.score)
        made._report = report
        return made

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NodeWithScore) and (self.node, self.score) == (other.node, other.score)


class RobustAnswerEvent(BaseEvent):
    """An answer was given, or could not be: sent for each, through LlamaIndex's instrumentation.

    Attributes:
        report: `RobustAnswer.to_dict()`; for a failure an abstention that says what became of every source.
        error: why there is no answer; None where there is one.
    """

    report: dict[str, Any]
    error: str | None = None

    @classmethod
    def class_name(cls) -> str:
        """Return the event's name."""
        return "RobustAnswerEvent"


def answer_sent(answer: RobustAnswer) -> None:
    """Send an answer to the listeners of LlamaIndex's events."""
    _dispatcher.event(RobustAnswerEvent(report=answer.to_dict()))


@contextmanager
def failures_sent() -> Iterator[None]:
    """Send failures in the block to the listeners, if there is a report; the error carries it as `robustness`."""
    try:
        yield
    except ModelError as error:
        if error.robustness is not None:
            _dispatcher.event(RobustAnswerEvent(report=error.robustness.to_dict(), error=printable(str(error), 500)))
        raise


class StructuredResponse(PydanticResponse):
    """A response whose answer is an object or `Abstained`, of which the text is the abstention and never "None"."""

    def __str__(self) -> str:
        return str(self.response) if isinstance(self.response, Abstained) else super().__str__()

    def __reduce__(self) -> Any:
        """Copy by construction: LlamaIndex's own class recurses endlessly on a copy that has no attributes yet."""
        return StructuredResponse, (self.response, self.source_nodes, self.metadata)


def structured(answer: RobustAnswer, output_cls: type[BaseModel] | None) -> BaseModel | None:
    """Return the object of a structured answer, `Abstained` for an abstention; None for an answer in words."""
    if output_cls is None:
        return None
    if answer.abstained:
        return Abstained.of(answer)
    try:
        return output_cls.model_validate_json(answer.text)
    except ValidationError:
        return None


def robust_answers(response: object) -> list[RobustAnswer]:
    """Return every robust answer behind a response, outermost first.

    It looks into responses of engines, routers, sub-questions, steps and agents, tool outputs, source nodes, streams,
    and errors that carry a report. Sub-questions and steps keep the source nodes alone of what they ask: of an answer
    without any, the `RobustAnswerEvent` has the report.
    """
    return list({id(answer): answer for answer in _answers(response, set(), 0)}.values())


def robust_answer(response: object) -> RobustAnswer:
    """Return the outermost robust answer behind a response: its radius, citations, warnings. See `robust_answers`.

    Raises:
        ValueError: there is none.
        RuntimeError: the response is a stream of which pieces are left.
    """
    if answers := robust_answers(response):
        return answers[0]
    if _report_of(response) == PENDING:
        raise RuntimeError("the answer is complete only after the last piece: iterate over the stream to its end")
    raise ValueError(
        f"there is no robust answer behind this {type(response).__name__}: give what a RobustRAGQueryEngine, one of "
        "our chat engines, or an engine with a RobustRAGSynthesizer returned"
    )


def _report_of(response: object) -> object:
    """Return the report in a response's metadata; None where a node of that name stands in its place."""
    metadata, nodes = getattr(response, "metadata", None), getattr(response, "source_nodes", None)
    if not isinstance(metadata, dict) or not isinstance(nodes, list):
        return None
    others = (node for node in nodes if not isinstance(node, ReportedNode))
    return None if any(node.node_id == REPORT for node in others) else metadata.get(REPORT)


def _answers(thing: Any, seen: set[int], depth: int) -> Iterator[RobustAnswer]:
    if thing is None or isinstance(thing, (str, BaseNode)) or depth > _DEEPEST or id(thing) in seen:
        return
    seen.add(id(thing))
    report: Any = thing._report if isinstance(thing, ReportedNode) else _report_of(thing)
    if isinstance(report, dict) and report != PENDING and report.get("schema") == SCHEMA and id(report) not in seen:
        seen.add(id(report))
        yield RobustAnswer.from_dict(report)
    parts: list[Any] = []
    if isinstance(thing, RobustAnswer):
        yield thing
    elif isinstance(thing, Mapping):
        parts = list(thing.values())
    elif isinstance(thing, (list, tuple)):
        parts = list(thing)
    elif not isinstance(thing, NodeWithScore):
        parts = [getattr(thing, name, None) for name in _CARRIERS]
    for part in parts:
        yield from _answers(part, seen, depth + 1)
