"""Plans: the defences without input or output.

A plan is a generator that asks and is told. It never calls a model; a driver does, in whatever way it likes (threads,
an event loop, a framework's callbacks), and sends the replies back. All drivers run the same plan, so there is one
implementation of each defence.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Generator, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from robustrag_integrations.answer import RobustAnswer
from robustrag_integrations.models.base import Distributions, Opening, Response, Role
from robustrag_integrations.prompts import Prompt


@dataclass(frozen=True)
class Ask:
    """Put independent prompts to the model; the reply is one `Response` each, in order.

    `isolated`: one prompt per group, to be run concurrently, never shown to the user. `final`: a single prompt whose
    answer is the user's, and may be streamed if it is `shown` as it is.
    """

    prompts: tuple[Prompt, ...]
    role: Role
    shown: bool = True


@dataclass(frozen=True)
class OpenSession:
    """Start a decoding session over these prompts; the reply is an `Opening`."""

    prompts: tuple[Prompt, ...]
    no_retrieval: Prompt
    max_new_tokens: int


@dataclass(frozen=True)
class Append:
    """Append a token to every row of the session; the reply is the next `Distributions`."""

    token: int


@dataclass(frozen=True)
class Sharpen:
    """Tell more tokens of the last distributions; the reply is a `Distributions`, or None if there are no more."""


@dataclass(frozen=True)
class Emit:
    """A piece of the answer is decided; drivers that stream pass it on. The reply is None."""

    text: str


Request: TypeAlias = Ask | OpenSession | Append | Sharpen | Emit
Reply: TypeAlias = Sequence[Response] | Opening | Distributions | None
Plan: TypeAlias = Generator[Request, Reply, RobustAnswer]


def responses_of(reply: Reply) -> Sequence[Response]:
    """The reply to an `Ask`."""
    if not isinstance(reply, Sequence):
        raise TypeError(f"the reply to an Ask must be a sequence of Response, got {type(reply).__name__}")
    return reply


def trimmed(pieces: Iterator[str]) -> Iterator[str]:
    """The pieces of a text without the whitespace at its two ends, each as soon as it is known to stay."""
    held, started = "", False
    for piece in pieces:
        ready, held = _ready(held + piece, started)
        if ready:
            started = True
            yield ready


async def atrimmed(pieces: AsyncIterator[str]) -> AsyncIterator[str]:
    """`trimmed` for an asynchronous stream."""
    held, started = "", False
    async for piece in pieces:
        ready, held = _ready(held + piece, started)
        if ready:
            started = True
            yield ready


def _ready(text: str, started: bool) -> tuple[str, str]:
    """Cut a text into what can be shown and the whitespace that may turn out to be its end."""
    text = text if started else text.lstrip()
    shown = text.rstrip()
    return shown, text[len(shown) :]
