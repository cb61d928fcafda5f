"""Running a plan with a model: synchronous, asynchronous, and either of them streaming.

A performer makes the model calls that a plan requests; of a framework, its model is a model of the core by then. Each
answer is logged alike. No text of a question, passage, response or error is: only numbers, names of settings and types
of errors.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Generic, TypeAlias, TypeVar

from robustrag_integrations._util.errors import INTERRUPTS, ModelError, was_cancelled
from robustrag_integrations._util.steps import closed_after
from robustrag_integrations.answers.answer import RobustAnswer
from robustrag_integrations.models.base import DecodingModel, DecodingSession, TextModel
from robustrag_integrations.plans.requests import (
    Append,
    Ask,
    Emit,
    OpenSession,
    Plan,
    Reply,
    Request,
    Retrieve,
    Sharpen,
)
from robustrag_integrations.replies.streams import Shown

RequestT = TypeVar("RequestT")
ReplyT = TypeVar("ReplyT")
Result = TypeVar("Result")


_LOG = logging.getLogger(__name__)


@contextmanager
def _watched(operation: str) -> Iterator[Callable[[Result], Result]]:
    """Log how an `answer` or a `certification` ends; what it gives logs the result, and returns it."""
    began = time.perf_counter()

    def done(result: Result) -> Result:
        seconds = time.perf_counter() - began
        if not isinstance(result, RobustAnswer):
            _LOG.info("%s: done in %.3f s", operation, seconds)
            return result
        states = [source.status for source in result.sources]
        said = {
            "method": result.method,
            "sources": len(states),
            "radius": result.radius,
            "abstained": result.abstained,
            "failed": states.count("failed"),
            "differs": states.count("differs"),
            "model_calls": result.model_calls,
        }
        if said["failed"]:
            _LOG.warning("%d of %d sources failed and count as abstentions", said["failed"], len(states))
        _LOG.info("answer: %s seconds=%.3f", " ".join(f"{name}={value}" for name, value in said.items()), seconds)
        return result

    try:
        yield done
    except BaseException as error:
        what = "cancelled" if was_cancelled(type(error)) else type(error).__name__
        _LOG.info("no %s: %s after %.3f s", operation, what, time.perf_counter() - began)
        raise


@dataclass(frozen=True)
class TextPerformer:
    """Performs a text plan's requests with a `TextModel`."""

    model: TextModel

    def __call__(self, request: Request) -> Reply:
        """Perform one request."""
        if isinstance(request, Retrieve):
            return request.find()
        if not isinstance(request, Ask):
            return None
        return self.model.generate(request.prompts, request.role, request.until)

    async def aperform(self, request: Request) -> Reply:
        """Perform one request without blocking the event loop."""
        if isinstance(request, Retrieve):
            return await _found(request)
        if not isinstance(request, Ask):
            return None
        return await self.model.agenerate(request.prompts, request.role, request.until)


async def _found(request: Retrieve) -> Any:
    return await (asyncio.to_thread(request.find) if request.afind is None else request.afind())


class DecodingPerformer:
    """Performs a decoding plan's requests with a `DecodingModel`; holds the plan's session.

    A question about trusted passages is asked for text, as any other model is.
    """

    def __init__(self, model: DecodingModel) -> None:
        self._model = model
        self._session: DecodingSession | None = None

    @property
    def model(self) -> TextModel:
        """The model as one that gives text."""
        if not isinstance(self._model, TextModel):
            raise TypeError(
                f"trusted passages are asked for text, which {type(self._model).__name__} does not give; use a "
                "LocalModel, or leave trusted= out"
            )
        return self._model

    def __call__(self, request: Request) -> Reply:
        """Perform one request."""
        if isinstance(request, Retrieve):
            return request.find()
        if isinstance(request, Ask):
            return self.model.generate(request.prompts, request.role)
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
        """Perform one request in a thread; cancelling takes effect between two prompts, or two tokens."""
        if isinstance(request, Retrieve):
            return await _found(request)
        return None if isinstance(request, Emit) else await self._model.in_thread(self, request)


Performer: TypeAlias = TextPerformer | DecodingPerformer


def run(
    plan: Generator[RequestT, ReplyT, Result], perform: Callable[[RequestT], ReplyT], *, operation: str = "answer"
) -> Result:
    """Run a plan (an answer's or a certificate's, as `operation` says in logs and spans) to its end."""
    with _watched(operation) as done:
        step = _step(plan, None)
        while not isinstance(step, _Done):
            step = _step(plan, perform(step))
        return done(step.result)


async def arun(
    plan: Generator[RequestT, ReplyT, Result],
    perform: Callable[[RequestT], Awaitable[ReplyT]],
    *,
    operation: str = "answer",
) -> Result:
    """`run` in an event loop. The plan's own steps (keywords, tallies, sums) run in threads."""
    with _watched(operation) as done:
        step = await asyncio.to_thread(_step, plan, None)
        while not isinstance(step, _Done):
            step = await asyncio.to_thread(_step, plan, await perform(step))
        return done(step.result)


@dataclass(frozen=True)
class _Done(Generic[Result]):
    """The end of a plan, with its result. (A StopIteration cannot leave a thread.)"""

    result: Result


def _step(plan: Generator[RequestT, Any, Result], reply: Any) -> RequestT | _Done[Result]:
    try:
        request = plan.send(reply)
    except StopIteration as done:
        return _Done(done.value)
    if isinstance(request, (Ask, OpenSession)):
        role = request.role if isinstance(request, Ask) else "isolated"
        length = sum(len(prompt.text) for prompt in request.prompts)
        _LOG.debug("asking %d %s prompts of %d characters in all", len(request.prompts), role, length)
    return request


def stream(plan: Plan, performer: Performer) -> Generator[str | RobustAnswer, None, None]:
    """Run a plan and yield the aggregated answer in pieces, then the `RobustAnswer`.

    The pieces add up to its text, unless the model retracted what was shown (`replies.streams.RETRACTED`, a warning
    then). Isolated responses are never among the pieces.
    """
    with _watched("answer") as done:
        step = _step(plan, None)
        while not isinstance(step, _Done):
            reply: Reply = None
            if isinstance(step, Emit):
                yield step.text
            elif isinstance(step, Ask) and step.is_streamed:
                answer = Shown(whole=step.whole, holds=step.holds)
                with _kept_in(answer):
                    for piece in performer.model.stream(step.prompts[0], step.role):
                        if ready := answer.take(piece):
                            yield ready
                with _told_to(plan):
                    if answer.is_missing:
                        answer.restart(performer(step)[0])
                if rest := answer.rest():
                    yield rest
                reply = [answer.response]
            else:
                reply = performer(step)
            step = _step(plan, reply)
        result = done(step.result)
    yield result


async def astream(plan: Plan, performer: Performer) -> AsyncGenerator[str | RobustAnswer, None]:
    """`stream` in an event loop."""
    with _watched("answer") as done:
        step = await asyncio.to_thread(_step, plan, None)
        while not isinstance(step, _Done):
            reply: Reply = None
            if isinstance(step, Emit):
                yield step.text
            elif isinstance(step, Ask) and step.is_streamed:
                answer = Shown(whole=step.whole, holds=step.holds)
                with _kept_in(answer):
                    async with closed_after(performer.model.astream(step.prompts[0], step.role)) as pieces:
                        async for piece in pieces:
                            if ready := answer.take(piece):
                                yield ready
                with _told_to(plan):
                    if answer.is_missing:
                        answer.restart((await performer.aperform(step))[0])
                if rest := answer.rest():
                    yield rest
                reply = [answer.response]
            else:
                reply = await performer.aperform(step)
            step = await asyncio.to_thread(_step, plan, reply)
        result = done(step.result)
    yield result


@contextmanager
def _kept_in(answer: Shown) -> Iterator[None]:
    try:
        yield
    except INTERRUPTS:
        raise
    except Exception as error:
        answer.failed = error


@contextmanager
def _told_to(plan: Plan) -> Iterator[None]:
    """Raise a failure in the plan, which sends it back with its report."""
    try:
        yield
    except ModelError as error:
        plan.throw(error)
        raise


class _Finished:
    _answer: RobustAnswer | None = None

    @property
    def answer(self) -> RobustAnswer:
        """The whole answer with its radius; RuntimeError while there are pieces left."""
        if self._answer is None:
            raise RuntimeError("the answer is complete only after the last piece: iterate over the stream to its end")
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

    def __exit__(self, *raised: object) -> None:
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

    async def __aexit__(self, *raised: object) -> None:
        await self.aclose()
