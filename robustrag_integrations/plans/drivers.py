"""Running a plan against the core's own models: synchronous, asynchronous, and either of them streaming.

Frameworks bring a `Performer` of their own, so that callbacks, tags and rate limits are theirs, and use the same four
functions.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from dataclasses import dataclass
from typing import Any, Generic, TypeGuard, TypeVar

from robustrag_integrations._util.steps import closed_after
from robustrag_integrations.answers.answer import RobustAnswer
from robustrag_integrations.errors import INTERRUPTS, ModelError
from robustrag_integrations.plans.performers import Performer
from robustrag_integrations.plans.requests import Ask, Emit, Plan, Reply, Request, responses_of
from robustrag_integrations.plans.watch import Watch
from robustrag_integrations.replies.streams import Shown

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
            with watch.asking(step) as span:
                reply = watch.heard(span, step, perform(step))
            step = _step(plan, reply, watch)
        return watch.done(step.result)


async def arun(
    plan: Generator[RequestT, ReplyT, Result],
    perform: Callable[[RequestT], Awaitable[ReplyT]],
    *,
    operation: str = "answer",
) -> Result:
    """`run` in an event loop. The plan's own steps (keywords, tallies, sums) run in threads."""
    with Watch(operation) as watch:
        step = await asyncio.to_thread(_step, plan, None, watch)
        while not isinstance(step, _Done):
            with watch.asking(step) as span:
                reply = watch.heard(span, step, await perform(step))
            step = await asyncio.to_thread(_step, plan, reply, watch)
        return watch.done(step.result)


@dataclass(frozen=True)
class _Done(Generic[Result]):
    """The end of a plan, with its result. (A StopIteration cannot leave a thread.)"""

    result: Result


def _step(plan: Generator[RequestT, Any, Result], reply: Any, watch: Watch) -> RequestT | _Done[Result]:
    def send() -> RequestT | _Done[Result]:
        try:
            return plan.send(reply)
        except StopIteration as done:
            return _Done(done.value)

    return watch.decide(send)


def stream(plan: Plan, performer: Performer) -> Generator[str | RobustAnswer, None, None]:
    """Run a plan and yield the aggregated answer in pieces, then the `RobustAnswer`.

    The pieces add up to its text, unless the model retracted what was shown (`replies.streams.RETRACTED`, a warning
    then). Isolated responses are never among the pieces.
    """
    with Watch("answer") as watch:
        step = _step(plan, None, watch)
        while not isinstance(step, _Done):
            reply: Reply = None
            if isinstance(step, Emit):
                yield step.text
            elif _is_streamed(step):
                answer = Shown(whole=step.whole)
                try:
                    for piece in watch.pieces(performer.stream_final(step.prompts[0])):
                        if ready := answer.take(piece):
                            yield ready
                except INTERRUPTS:
                    raise
                except Exception as error:
                    answer.failed = error
                try:
                    if answer.is_missing:
                        with watch.asking(step) as span:
                            answer.restart(responses_of(watch.heard(span, step, performer(step)))[0])
                except ModelError as error:
                    plan.throw(error)  # comes back with the plan's report
                    raise
                if rest := answer.rest():
                    yield rest
                reply = [answer.response]
            else:
                with watch.asking(step) as span:
                    reply = watch.heard(span, step, performer(step))
            step = _step(plan, reply, watch)
        result = watch.done(step.result)
    yield result


async def astream(plan: Plan, performer: Performer) -> AsyncGenerator[str | RobustAnswer, None]:
    """`stream` in an event loop."""
    with Watch("answer") as watch:
        step = await asyncio.to_thread(_step, plan, None, watch)
        while not isinstance(step, _Done):
            reply: Reply = None
            if isinstance(step, Emit):
                yield step.text
            elif _is_streamed(step):
                answer = Shown(whole=step.whole)
                try:
                    async with closed_after(watch.apieces(performer.astream_final(step.prompts[0]))) as pieces:
                        async for piece in pieces:
                            if ready := answer.take(piece):
                                yield ready
                except INTERRUPTS:
                    raise
                except Exception as error:
                    answer.failed = error
                try:
                    if answer.is_missing:
                        with watch.asking(step) as span:
                            answer.restart(responses_of(watch.heard(span, step, await performer.aperform(step)))[0])
                except ModelError as error:
                    plan.throw(error)  # comes back with the plan's report
                    raise
                if rest := answer.rest():
                    yield rest
                reply = [answer.response]
            else:
                with watch.asking(step) as span:
                    reply = watch.heard(span, step, await performer.aperform(step))
            step = await asyncio.to_thread(_step, plan, reply, watch)
        result = watch.done(step.result)
    yield result


def _is_streamed(request: Request) -> TypeGuard[Ask]:
    """True if this is the one call whose answer may be shown as it comes."""
    return isinstance(request, Ask) and request.role == "final" and request.shown
