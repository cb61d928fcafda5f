"""Running a plan against the core's own models: synchronous, asynchronous, and either of them streaming.

Frameworks bring a `perform` of their own (so that callbacks, tags and rate limits are theirs) and use the same four
functions.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Generator, Iterator
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Generic, TypeGuard, TypeVar

from robustrag_integrations.answer import RobustAnswer
from robustrag_integrations.models.base import DecodingModel, DecodingSession, Response, TextModel
from robustrag_integrations.plans.requests import (
    Append,
    Ask,
    Emit,
    OpenSession,
    Plan,
    Reply,
    Request,
    Sharpen,
    atrimmed,
    trimmed,
)
from robustrag_integrations.plans.watch import Watch
from robustrag_integrations.prompts import Prompt

Perform = Callable[[Request], Reply]
AsyncPerform = Callable[[Request], Awaitable[Reply]]
StreamFinal = Callable[[Prompt], Iterator[str]]
AsyncStreamFinal = Callable[[Prompt], AsyncIterator[str]]
Truncates = Callable[[Prompt], bool]

RequestT = TypeVar("RequestT")
ReplyT = TypeVar("ReplyT")
Result = TypeVar("Result")


def run(
    plan: Generator[RequestT, ReplyT, Result], perform: Callable[[RequestT], ReplyT], *, operation: str = "answer"
) -> Result:
    """Run a plan (an answer's or a certificate's, as `operation` says in logs and spans) to its end."""
    with Watch(operation) as watch:
        step = _step(plan, None, watch)
        while not isinstance(step, _Done):
            step = _step(plan, watch.ask(step, perform), watch)
        return watch.done(step.result)


async def arun(
    plan: Generator[RequestT, ReplyT, Result],
    perform: Callable[[RequestT], Awaitable[ReplyT]],
    *,
    operation: str = "answer",
) -> Result:
    """`run` in an event loop. The plan's own steps (keywords, tallies, sums) run in threads, as they take a while."""
    with Watch(operation) as watch:
        step = await asyncio.to_thread(_step, plan, None, watch)
        while not isinstance(step, _Done):
            step = await asyncio.to_thread(_step, plan, await watch.aask(step, perform), watch)
        return watch.done(step.result)


@dataclass(frozen=True)
class _Done(Generic[Result]):
    """A plan has come to its end. (A StopIteration cannot leave a thread.)"""

    result: Result


def _step(plan: Generator[RequestT, Any, Result], reply: Any, watch: Watch) -> RequestT | _Done[Result]:
    def send() -> RequestT | _Done[Result]:
        try:
            return plan.send(reply)
        except StopIteration as done:
            return _Done(done.value)

    return watch.decide(send)


def _says_nothing(prompt: Prompt) -> bool:
    return False


def stream(
    plan: Plan, perform: Perform, stream_final: StreamFinal, *, truncates: Truncates = _says_nothing
) -> Generator[str | RobustAnswer, None, None]:
    """Run a plan and give the aggregated answer in pieces, then the `RobustAnswer`. The pieces add up to its text.

    Isolated responses are never among the pieces. `truncates` says whether the streamed prompt was cut to fit.
    """
    with Watch("answer") as watch:
        step = _step(plan, None, watch)
        while not isinstance(step, _Done):
            reply: Reply = None
            if isinstance(step, Emit):
                yield step.text
            elif _streamed(step):
                said = []
                for piece in watch.pieces(trimmed(stream_final(step.prompts[0]))):
                    said.append(piece)
                    yield piece
                reply = [Response("".join(said), truncated=_cut(step, truncates))]
            else:
                reply = watch.ask(step, perform)
            step = _step(plan, reply, watch)
        answer = watch.done(step.result)
    yield answer


async def astream(
    plan: Plan, perform: AsyncPerform, stream_final: AsyncStreamFinal, *, truncates: Truncates = _says_nothing
) -> AsyncGenerator[str | RobustAnswer, None]:
    """`stream` in an event loop."""
    with Watch("answer") as watch:
        step = await asyncio.to_thread(_step, plan, None, watch)
        while not isinstance(step, _Done):
            reply: Reply = None
            if isinstance(step, Emit):
                yield step.text
            elif _streamed(step):
                said = []
                async for piece in watch.apieces(atrimmed(stream_final(step.prompts[0]))):
                    said.append(piece)
                    yield piece
                reply = [Response("".join(said), truncated=await asyncio.to_thread(_cut, step, truncates))]
            else:
                reply = await watch.aask(step, perform)
            step = await asyncio.to_thread(_step, plan, reply, watch)
        answer = watch.done(step.result)
    yield answer


def _cut(request: Ask, truncates: Truncates) -> bool:
    """Whether a final prompt with passages in it (only a defence that does not isolate has one) was cut."""
    [prompt] = request.prompts
    return prompt.context is not None and truncates(prompt)


def _streamed(request: Request) -> TypeGuard[Ask]:
    """Whether this is the one call whose answer may be shown as it comes."""
    return isinstance(request, Ask) and request.role == "final" and request.shown


class TextPerformer:
    """Performs a text plan's requests with a `TextModel`."""

    def __init__(self, model: TextModel) -> None:
        self._model = model

    def __call__(self, request: Request) -> Reply:
        """Perform one request."""
        return self._model.generate(request.prompts, request.role) if isinstance(request, Ask) else None

    async def aperform(self, request: Request) -> Reply:
        """Perform one request without blocking the event loop."""
        return await self._model.agenerate(request.prompts, request.role) if isinstance(request, Ask) else None


class DecodingPerformer:
    """Performs a decoding plan's requests with a `DecodingModel`; holds the plan's session."""

    def __init__(self, model: DecodingModel) -> None:
        self._model = model
        self._session: DecodingSession | None = None

    def __call__(self, request: Request) -> Reply:
        """Perform one request."""
        if isinstance(request, OpenSession):
            self._session = self._model.open_session(request.prompts, request.no_retrieval, request.max_new_tokens)
            return self._session.opening
        if isinstance(request, Append):
            if self._session is None:
                raise TypeError("a decoding plan must open a session before it appends")
            return self._session.append(request.token)
        if isinstance(request, Sharpen):
            return None if self._session is None else self._session.sharpen()
        return None

    async def aperform(self, request: Request) -> Reply:
        """Perform one request in a thread; cancelling takes effect between two tokens."""
        return None if isinstance(request, Emit) else await asyncio.to_thread(self, request)


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
