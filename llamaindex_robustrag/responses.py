"""The core's answers in LlamaIndex's response types."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Generator
from typing import Any, Literal

from llama_index.core.base.response.schema import PydanticResponse
from llama_index.core.bridge.pydantic import BaseModel, ValidationError

from llamaindex_robustrag.reports import failures_sent
from robustrag_integrations.answer import RobustAnswer
from robustrag_integrations.plans.streams import AnswerStream, AsyncAnswerStream

OnAnswer = Callable[[RobustAnswer], object]


class Abstained(BaseModel):
    """What stands in place of a structured answer that there is none of; false as a truth value.

    Attributes:
        text: the abstention's words.
        warnings: those of the answer, which say why.
        abstained: tells it apart where it is JSON.
    """

    text: str
    warnings: tuple[str, ...] = ()
    abstained: Literal[True] = True

    def __bool__(self) -> bool:
        return False

    def __str__(self) -> str:
        return self.text


class StructuredResponse(PydanticResponse):
    """A response whose answer is an object, or `Abstained`: then its text is the abstention's, and never "None"."""

    def __str__(self) -> str:
        return str(self.response) if isinstance(self.response, Abstained) else super().__str__()

    def __reduce__(self) -> Any:
        """LlamaIndex's own class looks up attributes of a copy that has none yet, without end."""
        return StructuredResponse, (self.response, self.source_nodes, self.metadata)


def started(stream: AnswerStream, done: OnAnswer) -> Generator[str, None, None]:
    """The stream's pieces, and then `done` with the answer.

    Everything before the first piece is done on return, so that failures are raised here.
    """
    first = next(stream, None)
    return _pieces(first, stream, done)


async def astarted(stream: AsyncAnswerStream, done: OnAnswer) -> AsyncGenerator[str, None]:
    """`started` without blocking the event loop."""
    first = await anext(stream, None)
    return _apieces(first, stream, done)


def at_once(text: str, done: Callable[[], object]) -> Generator[str, None, None]:
    """A stream of one piece, and then `done`."""
    yield text
    done()


async def aat_once(text: str, done: Callable[[], object]) -> AsyncGenerator[str, None]:
    """`at_once` for an event loop."""
    yield text
    done()


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
    """The object that a structured answer holds, `Abstained` for an abstention; None if the answer is words."""
    if output_cls is None:
        return None
    if answer.abstained:
        return Abstained(text=answer.text, warnings=answer.warnings)
    try:
        return output_cls.model_validate_json(answer.text)
    except ValidationError:
        return None
