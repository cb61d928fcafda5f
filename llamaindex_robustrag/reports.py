"""Adds the robust answer to LlamaIndex's own metadata, and to whatever its engines carry a response in."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, SupportsIndex

from llama_index.core import instrumentation
from llama_index.core.base.response.schema import PydanticResponse
from llama_index.core.bridge.pydantic import BaseModel, PrivateAttr, ValidationError
from llama_index.core.instrumentation.events import BaseEvent
from llama_index.core.schema import NodeWithScore

from robustrag_integrations._util.display import printable
from robustrag_integrations.answers.abstained import Abstained
from robustrag_integrations.answers.answer import SCHEMA, RobustAnswer
from robustrag_integrations.errors import ModelError
from robustrag_integrations.plans.drivers import AnswerStream, AsyncAnswerStream

_dispatcher = instrumentation.get_dispatcher(__name__)  # type: ignore[attr-defined]
REPORT = "robustrag"
_DEEPEST = 12  # responses within responses
OnAnswer = Callable[[RobustAnswer], object]
_CARRIERS = (
    "metadata",
    "response",
    "response_gen",
    "raw_output",
    "tool_output",
    "tool_calls",
    "sources",
    "source_nodes",
    "robustness",
)


class Report:
    """The answer of one response; for a streamed one, set after its last piece.

    Attributes:
        answer: the answer; None while it is streamed.
    """

    def __init__(self, answer: RobustAnswer | None = None) -> None:
        self.answer = answer

    def as_dict(self) -> dict[str, Any]:
        """Return the answer's `to_dict()`, or a note that it is pending while it is streamed."""
        return {"schema": SCHEMA, "pending": True} if self.answer is None else self.answer.to_dict()

    def __repr__(self) -> str:
        return "pending" if self.answer is None else repr(self.answer)


class ResponseMetadata(dict[str, Any]):
    """A response's metadata: node ids and the nodes' metadata, as LlamaIndex has it.

    The report is beside it, so that loops over the nodes stay what they were: `metadata["robustrag"]` and
    `metadata.get("robustrag")` give it as a JSON-safe dictionary, `metadata.robust_answer` as an object. Copies
    and pickles have it, too; plain dictionaries and JSON that are made from it have the nodes alone, and
    never what a node of that name says. It is true even without nodes, since engines replace what is not.
    """

    report: Report | None = None
    """None in what `dataclasses.asdict` makes of it: a dictionary of the nodes alone."""

    @classmethod
    def of(cls, nodes: Mapping[str, Any], report: Report | None) -> ResponseMetadata:
        """Create the metadata of nodes with a report."""
        made = cls({node: known for node, known in nodes.items() if report is None or node != REPORT})
        made.report = report
        return made

    @property
    def robust_answer(self) -> RobustAnswer | None:
        """The answer; None while it is streamed."""
        return None if self.report is None else self.report.answer

    def __repr__(self) -> str:
        return repr({**self} if self.report is None else {**self, REPORT: self.report})

    def __getitem__(self, key: str) -> Any:
        return self.report.as_dict() if key == REPORT and self.report is not None else super().__getitem__(key)

    def __contains__(self, key: object) -> bool:
        return (key == REPORT and self.report is not None) or super().__contains__(key)

    def __bool__(self) -> bool:
        return True

    def get(self, key: str, default: Any = None) -> Any:
        """Return the value of a key, `"robustrag"` among them."""
        return self.report.as_dict() if key == REPORT and self.report is not None else super().get(key, default)

    def copy(self) -> ResponseMetadata:
        """Return a copy with the same nodes and the same report."""
        return ResponseMetadata.of(self, self.report)

    def __reduce_ex__(self, protocol: SupportsIndex) -> Any:
        return ResponseMetadata.of, (dict(self), self.report)


class ReportedNode(NodeWithScore):
    """A source node of a robust answer: the retrieved node, with a reference to the answer.

    Engines that ask others (sub-questions, routers, steps) keep the source nodes and drop the rest of the responses.
    """

    _report: Report | None = PrivateAttr(default=None)

    @classmethod
    def of(cls, found: NodeWithScore, report: Report) -> ReportedNode:
        """Wrap a node of an answer. The wrapped node is the same object."""
        made = cls(node=found.node, score=found.score)
        made._report = report
        return made

    @property
    def report(self) -> Report | None:
        """The answer that the node was read for."""
        return self._report

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NodeWithScore) and (self.node, self.score) == (other.node, other.score)


class RobustAnswerEvent(BaseEvent):
    """An answer was given, or could not be: sent for each, through LlamaIndex's instrumentation.

    Attributes:
        report: `RobustAnswer.to_dict()`; for a failure an abstention that says what became of every group.
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


def started(stream: AnswerStream, done: OnAnswer) -> Generator[str, None, None]:
    """Start a stream; return a generator of its pieces that then calls `done` with the answer.

    Everything before the first piece is done on return, so that failures are raised here.
    """
    first = next(stream, None)
    return _pieces(first, stream, done)


async def astarted(stream: AsyncAnswerStream, done: OnAnswer) -> AsyncGenerator[str, None]:
    """`started` without blocking the event loop."""
    first = await anext(stream, None)
    return _apieces(first, stream, done)


def _pieces(first: str | None, stream: AnswerStream, done: OnAnswer) -> Generator[str, None, None]:
    with failures_sent(), stream:
        if first is not None:
            yield first
        yield from stream
        done(stream.answer)


async def _apieces(first: str | None, stream: AsyncAnswerStream, done: OnAnswer) -> AsyncGenerator[str, None]:
    async with stream:
        with failures_sent():
            if first is not None:
                yield first
            async for piece in stream:
                yield piece
            done(stream.answer)


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

    It looks into responses of query and chat engines, routers, sub-questions, steps and agents, tool outputs, metadata,
    source nodes, streams, lists of these, and errors that carry a report. Sub-questions and steps keep the source nodes
    alone of what they ask: of an answer without any, the `RobustAnswerEvent` has the report.

    Args:
        response: the response of an engine or agent, or an error that it raised.
    """
    found = {id(answer): answer for answer in _answers(response, set(), 0)}
    return list(found.values())


def robust_answer(response: object) -> RobustAnswer | None:
    """Return the outermost robust answer behind a response; None if there is none. See `robust_answers`."""
    return next(iter(robust_answers(response)), None)


def _answers(thing: Any, seen: set[int], depth: int) -> Iterator[RobustAnswer]:
    if thing is None or depth > _DEEPEST or id(thing) in seen:
        return
    seen.add(id(thing))
    if isinstance(thing, RobustAnswer):
        yield thing
        return
    report = getattr(thing, "report", None) if isinstance(thing, (ResponseMetadata, ReportedNode)) else None
    if report is not None and report.answer is not None:
        yield report.answer
    if isinstance(thing, str):
        return
    if isinstance(thing, Mapping):
        parts: list[Any] = list(dict(thing).values())
    elif isinstance(thing, (list, tuple)):
        parts = list(thing)
    elif isinstance(thing, NodeWithScore):
        parts = []
    else:
        parts = [getattr(thing, name, None) for name in _CARRIERS]
    for part in parts:
        yield from _answers(part, seen, depth + 1)
