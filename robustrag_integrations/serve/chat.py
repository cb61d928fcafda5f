"""`/v1/chat/completions`: from a request's bytes to the answer, whole or in pieces."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import MutableMapping
from contextlib import suppress
from typing import Any

from robustrag_integrations.serve.asked import Asked, asked_of
from robustrag_integrations.serve.bodies import ClientGoneError, Receive, read_json
from robustrag_integrations.serve.gate import Gate
from robustrag_integrations.serve.refusals import RefusedError, refusal_of
from robustrag_integrations.serve.replies import Reply, report_of
from robustrag_integrations.serve.sending import Send, Sender, unless_gone
from robustrag_integrations.serve.service import Service

_LOG = logging.getLogger(__name__)

_LAST_WORDS = 5  # seconds


class ChatCompletions:
    """An ASGI application for one address.

    Args:
        service: what answers.
    """

    def __init__(self, service: Service) -> None:
        self._service = service
        self._gate = Gate(service.limits)

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        """Answer one request; whatever goes wrong, the client is told in OpenAI's shape."""
        sender = Sender(send)
        try:
            with self._gate.place():
                body = await read_json(dict(scope["headers"]), receive, self._service.limits)
                asked = asked_of(body, self._service.limits, documents_allowed=self._service.documents_allowed)
                del body
                await unless_gone(receive, self._within_time(asked, sender))
        except ClientGoneError:
            _LOG.info("the client hung up")
        except Exception as error:
            refusal = refusal_of(error)
            if error is not refusal:
                _LOG.error("no answer: %s", type(error).__name__)  # its text may quote passages
            with suppress(TimeoutError, asyncio.TimeoutError):  # a client that does not read is left
                await asyncio.wait_for(_tell(sender, refusal), _LAST_WORDS)

    async def _within_time(self, asked: Asked, sender: Sender) -> None:
        await asyncio.wait_for(self._answer(asked, sender), self._service.limits.seconds)

    async def _answer(self, asked: Asked, sender: Sender) -> None:
        service, reply = self._service, Reply(asked.model)
        defense = service.defense_for(asked)
        async with self._gate.turn:
            passages = await asyncio.to_thread(service.passages_for, asked)
            if not asked.streamed:
                answer = await defense.aanswer(asked.question, passages, choices=asked.choices)
            else:
                async with defense.astream(asked.question, passages, choices=asked.choices) as pieces:
                    async for text in pieces:
                        await sender.event(reply.piece(text, first=sender.status is None))
                answer = pieces.answer
        report = report_of(answer, passages, service.notes_for(asked), service.prices)
        if not asked.streamed:
            await sender.json(200, reply.completion(answer, report))
            return
        await sender.event(reply.last(report))
        if asked.with_usage:
            await sender.event(reply.usage(answer.spending))
        await sender.end(complete=True)


async def _tell(sender: Sender, refusal: RefusedError) -> None:
    """Say why there is no answer; within a stream as its last event."""
    if sender.status is None:
        await sender.json(refusal.status, refusal.body, refusal.headers)
    else:
        await sender.event(refusal.body)
        await sender.end(complete=False)
