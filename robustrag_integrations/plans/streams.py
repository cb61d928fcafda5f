"""Answers in pieces: the streams that users iterate over, and whitespace held back until it is known to stay."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Generator, Iterator
from types import TracebackType

from robustrag_integrations._util.steps import closed_after
from robustrag_integrations.answers.answer import RobustAnswer
from robustrag_integrations.replies.reply import Ending, Piece

_NOT_YET = "the answer is complete only after the last piece: iterate over the stream to its end"


class _Finished:
    """The end of a stream: its answer, once it has come."""

    _answer: RobustAnswer | None = None

    @property
    def answer(self) -> RobustAnswer:
        """The whole answer with its radius, once every piece has been taken.

        Raises:
            RuntimeError: there are pieces left.
        """
        if self._answer is None:
            raise RuntimeError(_NOT_YET)
        return self._answer


class AnswerStream(_Finished):
    """Pieces of an answer as they are decided; `.answer` holds the whole afterwards. Closing it stops the work."""

    def __init__(self, source: Generator[str | RobustAnswer, None, None]) -> None:
        self._source = source

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


class AsyncAnswerStream(_Finished):
    """`AnswerStream` for `async for`."""

    def __init__(self, source: AsyncGenerator[str | RobustAnswer, None]) -> None:
        self._source = source

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
    """Yield the pieces of a text without the whitespace at its two ends, each as soon as it is known to stay."""
    trim = _Trim()
    for piece in pieces:
        if (ready := trim.ready(piece)) is not None:
            yield ready


async def atrimmed(pieces: AsyncIterator[Piece]) -> AsyncIterator[Piece]:
    """`trimmed` for an asynchronous stream."""
    trim = _Trim()
    async with closed_after(pieces):
        async for piece in pieces:
            if (ready := trim.ready(piece)) is not None:
                yield ready


class _Trim:
    """Holds back the whitespace that may turn out to be the end of a text."""

    def __init__(self) -> None:
        self._held, self._started = "", False

    def ready(self, piece: Piece) -> Piece | None:
        """Return what this piece makes ready to show: an ending as it is, text, or None."""
        if isinstance(piece, Ending):
            return piece
        text = self._held + piece
        text = text if self._started else text.lstrip()
        shown = text.rstrip()
        self._held = text[len(shown) :]
        self._started = self._started or bool(shown)
        return shown or None
