"""The report of an answer that came to nothing: an output parser failed over it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress

from robustrag_integrations.answer import RobustAnswer
from robustrag_integrations.plans.streams import AnswerStream, AsyncAnswerStream


@contextmanager
def reported(answer: RobustAnswer) -> Iterator[None]:
    """Give the answer to whatever exception is raised inside, as its `robustness`."""
    try:
        yield
    except Exception as error:
        attach(error, answer)
        raise


def attach(error: Exception, answer: RobustAnswer) -> None:
    """Give an exception the answer as its `robustness`, if it has room for it."""
    with suppress(AttributeError, TypeError):
        error.robustness = answer  # type: ignore[attr-defined]


def rest_of(pieces: AnswerStream) -> RobustAnswer | None:
    """The answer of a stream whose parser failed; None if it was the stream that failed."""
    for _ in pieces:
        pass
    with suppress(RuntimeError):
        return pieces.answer
    return None


async def arest_of(pieces: AsyncAnswerStream) -> RobustAnswer | None:
    """`rest_of` for `async for`."""
    async for _ in pieces:
        pass
    with suppress(RuntimeError):
        return pieces.answer
    return None
