"""The core's answers in LlamaIndex's response types."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Generator
from typing import Any

from llama_index.core.bridge.pydantic import BaseModel, ValidationError

from robustrag_integrations.answer import SCHEMA, RobustAnswer
from robustrag_integrations.plans.streams import AnswerStream, AsyncAnswerStream

OnAnswer = Callable[[RobustAnswer], object]


def pending() -> dict[str, Any]:
    """The report of an answer that is still being streamed; filled in place when the last piece is out."""
    return {"schema": SCHEMA, "pending": True}


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


def _pieces(first: str | None, stream: AnswerStream, done: OnAnswer) -> Generator[str, None, None]:
    with stream:
        if first is not None:
            yield first
        yield from stream
        done(stream.answer)


async def _apieces(first: str | None, stream: AsyncAnswerStream, done: OnAnswer) -> AsyncGenerator[str, None]:
    async with stream:
        if first is not None:
            yield first
        async for piece in stream:
            yield piece
        done(stream.answer)


def parsed(text: str, output_cls: type[BaseModel] | None) -> BaseModel | None:
    """The object that a structured answer holds; None when it is words, as an abstention is."""
    if output_cls is None:
        return None
    try:
        return output_cls.model_validate_json(text)
    except ValidationError:
        return None
