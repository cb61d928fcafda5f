"""Answers in pieces: what users iterate over, and whitespace that is held back until it is known to stay."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Generator, Iterator
from types import TracebackType

from robustrag_integrations.answer import RobustAnswer
from robustrag_integrations.closing import closed_after
from robustrag_integrations.replies.reply import Ending, Piece

_NOT_YET = "the answer is complete only after the last piece: iterate over the stream to its end"


class AnswerStream:
    """Pieces of an answer as they are decided; `.answer` holds the whole afterwards. Closing it stops the work."""

    def __init__(self, source: Generator[str | RobustAnswer, None, None]) -> None:
        self._source = source
        self._answer: RobustAnswer | None = None

    @property
    def answer(self) -> RobustAnswer:
        """The whole answer with its radius, once every piece has been taken.

        Raises:
            RuntimeError: there are pieces left.
        """
        if self._answer is None:
            raise RuntimeError(_NOT_YET)
        return self._answer

    def __iter__(self) -> AnswerStream:
        return self

    def __next__(self) -> str:
        piece = next(self._source)
        if isinstance(piece, RobustAnswer):
            self._answer = piece
            raise StopIteration
        return piece

    def close(self) -> None:
        """Stop; nothing more is asked of the model."""
        self._source.close()

    def __enter__(self) -> AnswerStream:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class AsyncAnswerStream:
    """`AnswerStream` for `async for`."""

    def __init__(self, source: AsyncGenerator[str | RobustAnswer, None]) -> None:
        self._source = source
        self._answer: RobustAnswer | None = None

    @property
    def answer(self) -> RobustAnswer:
        """The whole answer with its radius, once every piece has been taken.

        Raises:
            RuntimeError: there are pieces left.
        """
        if self._answer is None:
            raise RuntimeError(_NOT_YET)
        return self._answer

    def __aiter__(self) -> AsyncAnswerStream:
        return self

    async def __anext__(self) -> str:
        piece = await anext(self._source)
        if isinstance(piece, RobustAnswer):
            self._answer = piece
            raise StopAsyncIteration
        return piece

    async def aclose(self) -> None:
        """Stop; nothing more is asked of the model."""
        await self._source.aclose()

    async def __aenter__(self) -> AsyncAnswerStream:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()


def trimmed(pieces: Iterator[Piece]) -> Iterator[Piece]:
    """The pieces of a text without the whitespace at its two ends, each as soon as it is known to stay."""
    held, started = "", False
    for piece in pieces:
        if isinstance(piece, Ending):
            yield piece
            continue
        ready, held = _ready(held + piece, started)
        if ready:
            started = True
            yield ready


async def atrimmed(pieces: AsyncIterator[Piece]) -> AsyncIterator[Piece]:
    """`trimmed` for an asynchronous stream."""
    held, started = "", False
    async with closed_after(pieces):
        async for piece in pieces:
            if isinstance(piece, Ending):
                yield piece
                continue
            ready, held = _ready(held + piece, started)
            if ready:
                started = True
                yield ready


def _ready(text: str, started: bool) -> tuple[str, str]:
    """Cut a text into what can be shown and the whitespace that may turn out to be its end."""
    text = text if started else text.lstrip()
    shown = text.rstrip()
    return shown, text[len(shown) :]
