"""Performers of a plan's requests: the interface that drivers need, and those for the core's own models."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import replace
from typing import Protocol

from robustrag_integrations.models.base import DecodingModel, DecodingSession, TextModel, TokenCodec
from robustrag_integrations.plans.requests import (
    Append,
    Ask,
    Emit,
    OpenSession,
    Reply,
    Request,
    Score,
    Sharpen,
)
from robustrag_integrations.prompts import Prompt
from robustrag_integrations.replies.reply import Piece


class Performer(Protocol):
    """Performs the requests of one answer's plan."""

    def __call__(self, request: Request, /) -> Reply:
        """Perform one request."""
        ...

    async def aperform(self, request: Request, /) -> Reply:
        """Perform one request without blocking the event loop."""
        ...

    def stream_final(self, prompt: Prompt, /) -> Iterator[Piece]:
        """Yield the answer to the final prompt, in pieces, then how it ended, where that is known."""
        ...

    def astream_final(self, prompt: Prompt, /) -> AsyncIterator[Piece]:
        """`stream_final` for `async for`."""
        ...


class TextPerformer:
    """Performs a text plan's requests with a `TextModel`."""

    def __init__(self, model: TextModel) -> None:
        self._model = model

    def __call__(self, request: Request) -> Reply:
        """Perform one request."""
        if isinstance(request, Score):
            return self._model.score(request.prompts, request.texts) if self._model.can_score else None
        if not isinstance(request, Ask):
            return None
        if request.until is not None:
            return self._model.generate_until(request.prompts, request.role, request.until)
        return self._model.generate(_prompts_of(request), request.role)

    async def aperform(self, request: Request) -> Reply:
        """Perform one request without blocking the event loop."""
        if isinstance(request, Score):
            return await self._model.ascore(request.prompts, request.texts) if self._model.can_score else None
        if not isinstance(request, Ask):
            return None
        if request.until is not None:
            return await self._model.agenerate_until(request.prompts, request.role, request.until)
        return await self._model.agenerate(_prompts_of(request), request.role)

    def stream_final(self, prompt: Prompt) -> Iterator[Piece]:
        """Yield the final answer in pieces."""
        return self._model.stream(prompt)

    def astream_final(self, prompt: Prompt) -> AsyncIterator[Piece]:
        """`stream_final` for `async for`."""
        return self._model.astream(prompt)


def _prompts_of(request: Ask) -> Sequence[Prompt]:
    return request.prompts if request.shown else [replace(prompt, hidden=True) for prompt in request.prompts]


class DecodingPerformer:
    """Performs a decoding plan's requests with a `DecodingModel`; holds the plan's session."""

    def __init__(self, model: DecodingModel) -> None:
        self._model = model
        self._session: DecodingSession | None = None

    @property
    def codec(self) -> TokenCodec:
        """The model's tokens as text."""
        return self._model.codec

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
        """Perform one request in a thread; cancelling takes effect between two prompts, or two tokens."""
        return None if isinstance(request, Emit) else await self._model.in_thread(self, request)

    def stream_final(self, prompt: Prompt) -> Iterator[Piece]:
        """Refuse: the plan emits the tokens as they are decided."""
        raise TypeError("a decoding plan asks no final question")

    def astream_final(self, prompt: Prompt) -> AsyncIterator[Piece]:
        """Refuse, as `stream_final` does."""
        raise TypeError("a decoding plan asks no final question")
