"""One request and its reply, whatever it asks for: read within bounds, worked on while the client waits."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, MutableMapping
from contextlib import suppress
from typing import Any

from robustrag_integrations.serve.bodies import ClientGoneError, Receive, read_json
from robustrag_integrations.serve.gate import Gate
from robustrag_integrations.serve.limits import Limits
from robustrag_integrations.serve.refusals import RefusedError, refusal_of
from robustrag_integrations.serve.sending import Send, Sender, unless_gone

_LOG = logging.getLogger(__name__)

_LAST_WORDS = 5  # seconds

Work = Callable[[dict[str, Any], Sender], Coroutine[Any, Any, None]]


async def exchange(
    scope: MutableMapping[str, Any], receive: Receive, send: Send, *, gate: Gate, limits: Limits, work: Work
) -> None:
    """Answer one request; whatever goes wrong, the client is told in OpenAI's shape.

    Args:
        scope: ASGI's.
        receive: ASGI's.
        send: ASGI's.
        gate: whether there is a place for it.
        limits: how long it may be and take.
        work: answers a request's JSON; cancelled when the client hangs up or the time is over.
    """
    sender = Sender(send)
    try:
        with gate.place():
            body = await read_json(dict(scope["headers"]), receive, limits)
            await unless_gone(receive, _within(limits.seconds, work(body, sender)))
    except ClientGoneError:
        _LOG.info("the client hung up")
    except Exception as error:
        refusal = refusal_of(error)
        if error is not refusal:
            _LOG.error("no answer: %s", type(error).__name__)  # its text may quote passages
        with suppress(TimeoutError, asyncio.TimeoutError):  # a client that does not read is left
            await asyncio.wait_for(_tell(sender, refusal), _LAST_WORDS)


async def _within(seconds: float, work: Coroutine[Any, Any, None]) -> None:
    await asyncio.wait_for(work, seconds)


async def _tell(sender: Sender, refusal: RefusedError) -> None:
    """Say why there is no answer; within a stream as its last event."""
    if sender.status is None:
        await sender.json(refusal.status, refusal.body, refusal.headers)
    else:
        await sender.event(refusal.body)
        await sender.end(complete=False)
