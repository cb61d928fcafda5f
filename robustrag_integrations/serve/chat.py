"""`/v1/chat/completions`: from a request's bytes to the answer, whole or in pieces."""

from __future__ import annotations

import asyncio
from collections.abc import MutableMapping
from typing import Any

from robustrag_integrations.serve.asked import Asked, asked_of
from robustrag_integrations.serve.bodies import Receive
from robustrag_integrations.serve.exchange import exchange
from robustrag_integrations.serve.gate import Gate
from robustrag_integrations.serve.replies import Reply, report_of
from robustrag_integrations.serve.sending import Send, Sender
from robustrag_integrations.serve.service import Service


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
        await exchange(scope, receive, send, gate=self._gate, limits=self._service.limits, work=self._asked)

    async def _asked(self, body: dict[str, Any], sender: Sender) -> None:
        asked = asked_of(body, self._service.limits, documents_allowed=self._service.documents_allowed)
        await self._answer(asked, sender)

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
