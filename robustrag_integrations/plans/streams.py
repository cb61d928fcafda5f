"""Answers in pieces: the streams that users iterate over."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator
from types import TracebackType

from robustrag_integrations.answers.answer import RobustAnswer

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
