"""Running a plan against the core's own models: synchronous, asynchronous, and either of them streaming.

Frameworks bring a `Performer` of their own, so that callbacks, tags and rate limits are theirs, and use the same four
functions.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, TypeGuard, TypeVar

from robustrag_integrations._util.steps import closed_after
from robustrag_integrations.answers.answer import RobustAnswer
from robustrag_integrations.errors import ModelError
from robustrag_integrations.models.base import Response
from robustrag_integrations.plans.performers import Performer
from robustrag_integrations.plans.requests import Ask, Emit, Plan, Reply, Request, responses_of
from robustrag_integrations.plans.streams import atrimmed, trimmed
from robustrag_integrations.plans.watch import Watch
from robustrag_integrations.replies.reply import Ending
from robustrag_integrations.replies.streams import Shown, ashown, aunbroken, shown, unbroken

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
                answer, ending = Shown(whole=step.whole), Ending()
                plain = partial(_whole, watch, step, performer)
                pieces = unbroken(watch.pieces(performer.stream_final(step.prompts[0])), answer, plain)
                try:
                    for piece in trimmed(shown(pieces, answer)):
                        if isinstance(piece, Ending):
                            ending = piece
                        else:
                            yield piece
                except ModelError as error:
                    plan.throw(error)  # comes back with the plan's report
                    raise
                reply = [answer.response(ending, truncated=_was_cut(ending))]
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
                answer, ending = Shown(whole=step.whole), Ending()
                plain = partial(_awhole, watch, step, performer)
                pieces = aunbroken(watch.apieces(performer.astream_final(step.prompts[0])), answer, plain)
                try:
                    async with closed_after(atrimmed(ashown(pieces, answer))) as parts:
                        async for piece in parts:
                            if isinstance(piece, Ending):
                                ending = piece
                            else:
                                yield piece
                except ModelError as error:
                    plan.throw(error)  # comes back with the plan's report
                    raise
                reply = [answer.response(ending, truncated=_was_cut(ending))]
            else:
                with watch.asking(step) as span:
                    reply = watch.heard(span, step, await performer.aperform(step))
            step = await asyncio.to_thread(_step, plan, reply, watch)
        result = watch.done(step.result)
    yield result


def _whole(watch: Watch, request: Ask, performer: Performer) -> Response:
    """Get the final reply by a plain call, where its stream failed."""
    with watch.asking(request) as span:
        return responses_of(watch.heard(span, request, performer(request)))[0]


async def _awhole(watch: Watch, request: Ask, performer: Performer) -> Response:
    with watch.asking(request) as span:
        return responses_of(watch.heard(span, request, await performer.aperform(request)))[0]


def _was_cut(ending: Ending) -> bool:
    """True if a final prompt's passages were cut to fit, as models that know end their streams with a `Response`."""
    return isinstance(ending, Response) and ending.truncated


def _is_streamed(request: Request) -> TypeGuard[Ask]:
    """True if this is the one call whose answer may be shown as it comes."""
    return isinstance(request, Ask) and request.role == "final" and request.shown
